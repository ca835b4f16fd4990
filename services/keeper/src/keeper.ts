import { createHash } from "node:crypto";
import { type Logger, Loop, type Running, startTasks } from "@rollcall/process";
import { beginExecution, type NeverStarted, neverStarted } from "./execution/execution-machine.ts";
import type { Executor, Executors, Standing } from "./execution/executor.ts";
import type { KeeperServices, MachineClock, ToLaunch } from "./execution/keeper-services.ts";
import { LiveExecution } from "./execution/live-execution.ts";
import { type Execution, type ExecutionIdentity, isExecutionId } from "./journal/execution-entry.ts";
import type { Journal } from "./journal/journal.ts";
import { LaunchQueue } from "./launch-queue.ts";
import type { OutputPlace } from "./output/execution-output.ts";
import type { StreamName } from "./output/output-plan.ts";
import type { TimeMark } from "./output/output-times.ts";
import { planRetention } from "./retention.ts";
import type { SeenStamp } from "./seen-stamp.ts";
import { NO_RULES, readSpec } from "./spec/read-spec.ts";
import type { ExecutionState } from "./state/execution-state.ts";

/** Dependencies of a keeper. */
export interface KeeperOptions {
  readonly journal: Journal;
  readonly executors: Executors;
  readonly seen: SeenStamp;
  readonly clock: MachineClock;
  readonly bootId: string;
  readonly log: Logger;
}

/** The keeper refuses a request. The message gives the reason. */
export class KeeperRefusal extends Error {
  override readonly name = "KeeperRefusal";
}

/** A piece of output. */
export interface ReadPiece {
  readonly offset: number;
  readonly data: Uint8Array;
  readonly isEnd: boolean;
  /** Whether the beginning of the requested output is no longer kept. */
  readonly isCut: boolean;
  /** When the output was written, if that was requested. Bytes before the first time have no known time. */
  readonly times: readonly TimeMark[];
}

/** A piece of output to read. */
export interface WantedPiece {
  readonly from: OutputPlace;
  readonly limitBytes: number;
  /** Whether to include the times. */
  readonly isTimed?: boolean;
}

/** The maximum number of executions that have not ended. The scheduler does not place more on a node. */
const MOST_RUNNING = 1_000;

const SCAN_EVERY_MS = 2_000;
const TIDY_EVERY_MS = 60_000;

/** Manages the executions of a machine. Every request names one execution, and can be repeated. */
export class Keeper implements Running {
  readonly #services: KeeperServices;
  readonly #seen: SeenStamp;
  readonly #executions = new Map<string, LiveExecution>();
  /** The last request about each execution that is being handled. */
  readonly #requests = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(record: Execution) => void>();
  readonly #launches = new Map<Executor | null, LaunchQueue>();
  #tasks: { close(): Promise<void> } = { close: async () => {} };

  private constructor(options: KeeperOptions) {
    const { seen, ...others } = options;
    this.#seen = seen;
    this.#services = {
      ...others,
      seenAtMs: () => seen.atMs,
      toLaunch: (execution) => this.#toLaunch(execution),
      onChange: (record) => {
        for (const listener of this.#listeners) listener(record);
      },
    };
  }

  /** Take over what earlier keepers left. */
  static async open(options: KeeperOptions): Promise<Keeper> {
    const { journal, log } = options;
    const keeper = new Keeper(options);
    const records = await journal.load(log);
    const executions = records.map((record) => new LiveExecution(keeper.#services, record));
    for (const one of executions) keeper.#executions.set(one.identity.id, one);
    await Promise.all(executions.map((one) => one.adopt()));
    const running = executions.filter(({ isEnded }) => !isEnded).length;
    log.info({ executions: records.length, running }, "executions adopted");
    const { clock } = options;
    // A watch reports changes to the files that shims write. These loops find other changes, such as a killed shim.
    // There is one loop per executor, so that a slow engine does not delay processes.
    const looks = Object.entries(keeper.#services.executors).map(([kind, executor]) => {
      return new Loop({ name: `look-${kind}`, clock, everyMs: SCAN_EVERY_MS, turn: () => keeper.#look(executor) });
    });
    const tidy = new Loop({ name: "tidy", clock, everyMs: TIDY_EVERY_MS, turn: () => keeper.tidy() });
    const repeat = new Loop({ name: "repeat", clock, everyMs: SCAN_EVERY_MS, turn: async () => keeper.#repeat() });
    keeper.#tasks = startTasks([...looks, tidy, repeat], { log, clock });
    return keeper;
  }

  /** All known executions, whether they are reported or not. */
  records(): readonly Execution[] {
    return [...this.#executions.values()].map(({ record }) => record);
  }

  /** Whether an execution has not ended or has processes left. */
  get isBusy(): boolean {
    return [...this.#executions.values()].some(({ isReleased }) => !isReleased);
  }

  /** The number of executions that are queued to start. */
  get waiting(): number {
    return [...this.#launches.values()].reduce((sum, queue) => sum + queue.waiting, 0);
  }

  /** Subscribe to changes. Returns an unsubscribe function. */
  subscribe(listener: (record: Execution) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Start an execution. A known execution is never started again, whatever happened to it. Resolves once the execution
   * is on disk. Throws KeeperRefusal.
   */
  start(identity: ExecutionIdentity, logId: string): Promise<void> {
    return this.#inTurn(identity.id, () => this.#start(identity, logId));
  }

  async #start(identity: ExecutionIdentity, logId: string): Promise<void> {
    const known = this.#known(identity.id);
    if (known !== undefined) {
      known.named(logId);
      return known.bind(logId);
    }
    const running = [...this.#executions.values()].filter(({ isEnded }) => !isEnded).length;
    if (running >= MOST_RUNNING) throw new KeeperRefusal(`this machine already has ${running} executions, the maximum`);
    const spec = Buffer.from(identity.spec, "base64");
    if (createHash("sha256").update(spec).digest("hex") !== identity.specDigest) {
      throw new KeeperRefusal(`the spec of execution ${identity.id} does not match its digest`);
    }
    const read = readSpec(spec);
    const execution = await this.#add(identity, logId, beginExecution(read.ok ? read.plan.rules : read.rules));
    execution.queue();
  }

  /** Stop an execution. An unknown execution is recorded as stopped, so that its end can be reported. */
  stop(identity: ExecutionIdentity, logId: string): Promise<void> {
    return this.#inTurn(identity.id, () => this.#stop(identity, logId));
  }

  async #stop(identity: ExecutionIdentity, logId: string): Promise<void> {
    const known = this.#known(identity.id);
    if (known !== undefined) {
      known.named(logId);
      return known.stop();
    }
    await this.#end(identity, logId, { cause: "STOPPED", message: "stopped before it was started" });
  }

  /** Record that an execution cannot be started, or that it was started but is no longer known to this keeper. */
  refuse(identity: ExecutionIdentity, logId: string, end: NeverStarted): Promise<void> {
    return this.#inTurn(identity.id, async () => {
      const known = this.#known(identity.id);
      if (known !== undefined) return known.named(logId);
      await this.#end(identity, logId, end);
    });
  }

  /** Stop reporting these executions, except those that still run. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#executions.get(id)?.forget();
  }

  /** Record which store history knows these executions. */
  bind(ids: readonly string[], logId: string): void {
    for (const id of ids) this.#executions.get(id)?.bind(logId);
  }

  /** Record that the agent has just received something from the control plane. */
  seen(): void {
    this.#seen.renew();
    for (const execution of this.#executions.values()) execution.wake();
  }

  /** Read a piece of output. Throws KeeperRefusal for an unknown execution. */
  async read(id: string, stream: StreamName, { from, limitBytes, isTimed = false }: WantedPiece): Promise<ReadPiece> {
    const execution = this.#executions.get(id);
    if (execution === undefined) throw new KeeperRefusal(`the keeper has no output of execution ${id}`);
    const { isEnded } = execution;
    const output = await execution.output();
    // Check this before reading the piece. If the output settles in the meantime, `isEnd` is false, and the caller
    // reads once more.
    const isSettled = isEnded && output.isSettled;
    const begin = await output.begin(stream, from);
    const piece = await output.read(stream, begin.offset, limitBytes, isTimed);
    return {
      ...piece,
      isEnd: isSettled && piece.offset + piece.data.length >= output.end(stream),
      isCut: begin.isCut || piece.offset > begin.offset,
    };
  }

  /** Remove executions that ended long ago. */
  async tidy(): Promise<void> {
    const ended = this.records().flatMap(({ identity, state, forgottenWallMs }) => {
      return state.phase.kind === "ended"
        ? [{ id: identity.id, endedWallMs: state.phase.wallMs, forgottenWallMs }]
        : [];
    });
    const { clock, journal, log } = this.#services;
    const { forget, remove } = planRetention(ended, clock.wallMs());
    this.forget(forget);
    for (const id of remove) {
      // Keep the files, which are needed to find the remaining processes.
      if (this.#executions.get(id)?.isReleased === false) continue;
      try {
        await this.#executions.get(id)?.close();
        await journal.remove(id);
        this.#executions.delete(id);
      } catch (error) {
        // Keep the execution, so that the next pass tries again. Others do not wait for this one.
        log.warn({ err: error, execution_id: id }, "cannot remove execution");
      }
    }
    for (const executor of Object.values(this.#services.executors)) await executor.tidy((id) => this.#standing(id));
  }

  /** Stop the keeper and leave all executions running. */
  async close(): Promise<void> {
    await this.#tasks.close();
    await Promise.all([...this.#executions.values()].map((execution) => execution.close()));
    await this.#seen.close();
  }

  #known(id: string): LiveExecution | undefined {
    if (!isExecutionId(id)) throw new KeeperRefusal(`${JSON.stringify(id)} is not a valid execution id`);
    return this.#executions.get(id);
  }

  /**
   * Handle the requests about one execution one after the other, so that a request finds its record on disk, or not at
   * all.
   */
  #inTurn(id: string, handle: () => Promise<void>): Promise<void> {
    const done = (this.#requests.get(id) ?? Promise.resolve()).then(handle);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (this.#requests.get(id) === settled) this.#requests.delete(id);
      });
    this.#requests.set(id, settled);
    return done;
  }

  async #end(identity: ExecutionIdentity, logId: string, end: NeverStarted): Promise<void> {
    await this.#add(identity, logId, neverStarted(NO_RULES, end, this.#services.clock.wallMs()));
  }

  async #add(identity: ExecutionIdentity, logId: string, state: ExecutionState): Promise<LiveExecution> {
    const { bootId, executors, journal, onChange } = this.#services;
    const record: Execution = { identity, logId, bootId, state, forgottenWallMs: null };
    const execution = new LiveExecution(this.#services, record);
    // Add the execution before the first await, so that a second request for it finds the same one.
    this.#executions.set(identity.id, execution);
    try {
      // Kill everything that the execution left running, because no keeper can adopt it if its record was lost.
      if (state.phase.kind === "ended") for (const one of Object.values(executors)) await one.end(identity.id);
      await journal.create(record);
    } catch (error) {
      this.#executions.delete(identity.id);
      throw error;
    }
    onChange(execution.record);
    return execution;
  }

  #toLaunch(execution: ToLaunch): () => void {
    const { executor } = execution;
    const queue = this.#launches.get(executor) ?? new LaunchQueue(executor?.mostLaunching ?? 1, this.#services.log);
    this.#launches.set(executor, queue);
    return queue.add(execution);
  }

  async #look(executor: Executor): Promise<void> {
    const mine = [...this.#executions.values()].filter((one) => !one.isEnded && one.executor === executor);
    if (mine.length === 0) return;
    const isToBeLookedAt = await executor.survey();
    for (const one of mine) if (one.isStarting || isToBeLookedAt(one.identity.id)) await one.look();
  }

  /** Repeat what failed for single executions, such as writes while the disk was full. */
  #repeat(): void {
    for (const execution of this.#executions.values()) execution.repeat();
  }

  #standing(id: string): Standing {
    const record = this.#executions.get(id)?.record;
    if (record === undefined) return "unknown";
    if (record.forgottenWallMs !== null) return "forgotten";
    return record.state.phase.kind === "ended" ? "ended" : "kept";
  }
}
