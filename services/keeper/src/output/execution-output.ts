import type { Logger } from "@rollcall/process";
import type { OutputRules, StreamName } from "./output-plan.ts";
import { OutputStore, type TimedPiece } from "./output-store.ts";

/** Copies an execution's output to its stores. */
export interface OutputReader {
  /** Whether everything is stored, and no further output can follow. */
  readonly isDone: boolean;
  /** Stop reading. */
  close(): Promise<void>;
}

/** A position in a stream: an offset, a number of bytes before its end, or a wall time. */
export type OutputPlace =
  | { readonly kind: "offset"; readonly offset: number }
  | { readonly kind: "tail"; readonly bytes: number }
  | { readonly kind: "since"; readonly wallMs: number };

/** The stores of an execution's output. */
export type OutputStores = Readonly<Record<StreamName, OutputStore>>;

export class ExecutionOutput {
  readonly #stores: OutputStores;
  readonly #log: Logger;
  #readers: readonly OutputReader[] = [];

  private constructor(stores: OutputStores, log: Logger) {
    this.#stores = stores;
    this.#log = log;
  }

  static async open(directory: string, rules: OutputRules, log: Logger): Promise<ExecutionOutput> {
    const stdout = await OutputStore.open({ directory, name: "stdout", rules });
    const stderr = await OutputStore.open({ directory, name: "stderr", rules });
    return new ExecutionOutput({ stdout, stderr }, log);
  }

  /** Start to store the output. Must be called only once. */
  take(open: (stores: OutputStores) => readonly OutputReader[]): void {
    if (this.#readers.length > 0) return;
    try {
      this.#readers = open(this.#stores);
    } catch (error) {
      this.#log.error({ err: error }, "cannot read the output of an execution");
    }
  }

  /** Whether all output is stored and none can follow; also true if no output is being read. */
  get isSettled(): boolean {
    return this.#readers.every(({ isDone }) => isDone);
  }

  /** Read a piece of a stream, without times unless `isTimed` is set. */
  async read(name: StreamName, offset: number, limitBytes: number, isTimed: boolean): Promise<TimedPiece> {
    const store = this.#stores[name];
    return isTimed ? store.readTimed(offset, limitBytes) : { ...(await store.read(offset, limitBytes)), times: [] };
  }

  /** Find where to start reading, and whether some of the requested output is no longer kept. */
  async begin(name: StreamName, from: OutputPlace): Promise<{ readonly offset: number; readonly isCut: boolean }> {
    const store = this.#stores[name];
    if (from.kind === "since") return store.since(from.wallMs);
    const offset = from.kind === "tail" ? Math.max(0, store.end - from.bytes) : from.offset;
    return { offset, isCut: offset < store.begin };
  }

  /** The current end of a stream. */
  end(name: StreamName): number {
    return this.#stores[name].end;
  }

  /** Stop reading. */
  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.close()));
  }
}
