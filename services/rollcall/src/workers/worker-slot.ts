import { once } from "node:events";
import type { ReadyReport } from "@rollcall/rpc";
import { type FromWorker, isFromWorker, type ToWorker, type WorkerQuestion } from "./worker-link.ts";

/** The part of Node.js' `cluster.Worker` that a primary needs. */
export interface WorkerProcess {
  readonly process: {
    readonly pid?: number | undefined;
    kill(signal: NodeJS.Signals): boolean;
  };
  send(message: ToWorker, callback?: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  once(event: "exit", listener: (code: number | null, signal: string | null) => void): unknown;
  isConnected(): boolean;
}

/** Where a worker listens. */
export type ServingPorts = Omit<Extract<FromWorker, { kind: "serving" }>, "kind">;

/** How a worker ended. */
export interface WorkerExit {
  /** The exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
}

/** One process of a worker, from start to exit. */
export class RunningWorker {
  readonly number: number;
  /** Resolves when the process exits. */
  readonly exited: Promise<WorkerExit>;
  /** Resolves when the worker serves; never if it exits before. */
  readonly serving: Promise<ServingPorts>;
  readonly #worker: WorkerProcess;
  readonly #answers = new Map<number, (text: string) => void>();
  #asked = 0;
  #instance: string | null = null;

  constructor(number: number, worker: WorkerProcess) {
    this.number = number;
    this.#worker = worker;
    this.exited = new Promise((resolve) => {
      worker.once("exit", (code, signal) => resolve({ code, signal }));
    });
    this.serving = new Promise((resolve) => {
      worker.on("message", (message) => {
        if (!isFromWorker(message)) return;
        if (message.kind === "serving") resolve(message);
        else if (message.kind === "instance") this.#instance = message.instance;
        else this.#answers.get(message.id)?.(message.text);
      });
    });
  }

  get pid(): number {
    return this.#worker.process.pid ?? -1;
  }

  /** The instance of the worker's lease; null until the worker reports it. */
  get instance(): string | null {
    return this.#instance;
  }

  /** Ask the worker. Returns null when it does not respond before the signal aborts. */
  async ask(what: WorkerQuestion, signal: AbortSignal): Promise<string | null> {
    if (signal.aborted || !this.#worker.isConnected()) return null;
    this.#asked += 1;
    const id = this.#asked;
    const answered = new Promise<string>((resolve) => this.#answers.set(id, resolve));
    this.#send({ kind: "ask", id, what });
    try {
      return await Promise.race([answered, once(signal, "abort").then(() => null)]);
    } finally {
      this.#answers.delete(id);
    }
  }

  /** The worker's checks; null when it does not respond. */
  async ready(signal: AbortSignal): Promise<ReadyReport | null> {
    const text = await this.ask("ready", signal);
    return text === null ? null : (JSON.parse(text) as ReadyReport);
  }

  /** Ask the worker to shut down. */
  end(): void {
    this.#send({ kind: "end" });
  }

  kill(signal: NodeJS.Signals): void {
    this.#worker.process.kill(signal);
  }

  /** Let the worker reload the settings that can change while it runs. */
  reload(): void {
    this.#send({ kind: "reload" });
  }

  #send(message: ToWorker): void {
    // Ignore errors, because a worker that is exiting no longer listens, and the pool waits for its
    // exit.
    if (this.#worker.isConnected()) this.#worker.send(message, () => {});
  }
}
