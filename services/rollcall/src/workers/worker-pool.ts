import { type Clock, fullJitter, type Logger, type MetricsRegistry, renderMetrics } from "@rollcall/process";
import { isReady, type ReadyReport } from "@rollcall/rpc";
import { mergeMetrics } from "./merge-metrics.ts";
import { RunningWorker, type ServingPorts, type WorkerExit, type WorkerProcess } from "./worker-slot.ts";

export interface WorkerPoolOptions {
  readonly count: number;
  /** Start the worker with this number. */
  readonly fork: (number: number) => WorkerProcess;
  /** Called when a worker with a known instance has ended without a clean shutdown. */
  readonly onCrashed: (instance: string) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Random numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

const ANSWER_WITHIN_MS = 1_500;
/** Time limit for a worker to end, slightly longer than the worker's own limit. */
const END_WITHIN_MS = 28_000;
const PAUSE_BASE_MS = 500;
const PAUSE_MAX_MS = 30_000;
/** Running time after which earlier crashes of a worker no longer count. */
const STEADY_AFTER_MS = 60_000;

/** Keeps a number of workers running, and represents them as one process. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #running = new Map<number, RunningWorker>();
  readonly #ending = new AbortController();
  #kept: Promise<unknown> = Promise.resolve();

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /**
   * Start all workers, and resolve when all serve. If one fails, or the signal aborts, end all workers and reject.
   */
  async start(signal: AbortSignal): Promise<ServingPorts> {
    const first = this.#numbers().map((number) => this.#run(number));
    try {
      const ports = await Promise.all(first.map((worker) => firstServing(worker, signal)));
      this.#kept = Promise.all(first.map((worker) => this.#keep(worker)));
      return ports[0] ?? { port: 0, agentPort: 0 };
    } catch (error) {
      this.#kept = Promise.all(first.map(({ exited }) => exited));
      await this.close();
      throw error;
    }
  }

  /** Ready while at least one worker is ready, because the others share its ports and load. */
  async ready(): Promise<ReadyReport> {
    const reports = await this.#each((worker, signal) => worker.ready(signal));
    const states = reports.map(({ number, answer }) => {
      if (answer === null) return { ok: false, text: `worker ${number}: no answer` };
      const troubles = Object.entries(answer).filter(([, { ok, degraded = false }]) => !ok || degraded);
      const text = troubles.map(([name, { message }]) => `worker ${number}: ${name}: ${message}`);
      return { ok: isReady(answer), text: text.join("; ") };
    });
    const ready = states.filter(({ ok }) => ok).length;
    const troubles = states.flatMap(({ text }) => (text === "" ? [] : [text]));
    const message = [`${ready} of ${this.#options.count} workers`, ...troubles].join("; ");
    return { workers: { ok: ready > 0, ...(troubles.length === 0 ? {} : { degraded: true }), message } };
  }

  /** The metrics of the workers and of this process, with the label `worker` on each sample. */
  async metrics(own: MetricsRegistry): Promise<string> {
    const texts = await this.#each((worker, signal) => worker.ask("metrics", signal));
    return mergeMetrics([
      { worker: "primary", text: await renderMetrics(own) },
      ...texts.flatMap(({ number, answer }) => (answer === null ? [] : [{ worker: String(number), text: answer }])),
    ]);
  }

  /** Let all workers reload the settings that can change while they run. */
  reload(): void {
    for (const worker of this.#running.values()) worker.reload();
  }

  /** Shut down all workers, and kill those that do not end in time. */
  async close(): Promise<void> {
    const { clock, log } = this.#options;
    this.#ending.abort(new Error("the process is shutting down"));
    for (const worker of this.#running.values()) worker.end();
    const done = new AbortController();
    const late = clock.sleep(END_WITHIN_MS, done.signal).then(
      () => {
        log.warn({ workers: [...this.#running.keys()] }, "workers did not exit in time; killing them");
        for (const worker of this.#running.values()) worker.kill("SIGKILL");
      },
      () => {},
    );
    await this.#kept;
    done.abort();
    await late;
  }

  #numbers(): readonly number[] {
    return Array.from({ length: this.#options.count }, (_, index) => index + 1);
  }

  #run(number: number): RunningWorker {
    const worker = new RunningWorker(number, this.#options.fork(number));
    this.#running.set(number, worker);
    void worker.exited.then(() => {
      if (this.#running.get(number) === worker) this.#running.delete(number);
    });
    this.#options.log.info({ worker: number, pid: worker.pid }, "worker started");
    return worker;
  }

  /** Restart a worker each time it ends, until all are shut down. */
  async #keep(first: RunningWorker): Promise<void> {
    const { clock, log, random = Math.random } = this.#options;
    const { signal } = this.#ending;
    let worker = first;
    for (let crashes = 0; ; ) {
      const startedMs = clock.nowMs();
      const exit = await worker.exited;
      if (signal.aborted) return;
      if (clock.nowMs() - startedMs >= STEADY_AFTER_MS) crashes = 0;
      const bounds = { attempt: crashes, baseMs: PAUSE_BASE_MS, maxMs: PAUSE_MAX_MS };
      const pauseMs = PAUSE_BASE_MS / 2 + fullJitter({ ...bounds, random01: random() });
      crashes += 1;
      log.error({ worker: worker.number, ...exit, pause_ms: pauseMs }, "worker exited; restarting it");
      await this.#settle(worker);
      await clock.sleep(pauseMs, signal).catch(() => {});
      if (signal.aborted) return;
      worker = this.#run(worker.number);
    }
  }

  /**
   * Report the instance of a worker that has exited. Nothing uses the instance any longer, so other processes need
   * not wait until its lease expires.
   */
  async #settle({ number, instance }: RunningWorker): Promise<void> {
    if (instance === null) return;
    await this.#options.onCrashed(instance).catch((err: unknown) => {
      this.#options.log.warn({ worker: number, err }, "cannot release the lease of a worker; it will expire");
    });
  }

  async #each<T>(
    ask: (worker: RunningWorker, signal: AbortSignal) => Promise<T | null>,
  ): Promise<readonly { readonly number: number; readonly answer: T | null }[]> {
    const over = new AbortController();
    const late = this.#options.clock.sleep(ANSWER_WITHIN_MS, over.signal).then(
      () => over.abort(),
      () => {},
    );
    const answers = await Promise.all(
      this.#numbers().map(async (number) => {
        const worker = this.#running.get(number);
        return { number, answer: worker === undefined ? null : await ask(worker, over.signal) };
      }),
    );
    over.abort();
    await late;
    return answers;
  }
}

async function firstServing(worker: RunningWorker, signal: AbortSignal): Promise<ServingPorts> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  const ended = worker.exited.then((exit) => {
    throw new Error(`worker ${worker.number} could not start (${describeExit(exit)})`);
  });
  return Promise.race([worker.serving, ended, aborted]);
}

function describeExit({ code, signal }: WorkerExit): string {
  return signal === null ? `exit code ${code}` : `ended by ${signal}`;
}
