import type { Logger } from "@rollcall/process";
import type { OutputRules } from "./output-plan.ts";
import { OutputStore, type Piece, type StreamName } from "./output-store.ts";

/** Moves what an execution writes to its stores. */
export interface OutputReader {
  /** Whether all is written that will ever be. */
  readonly isDone: boolean;
  /** Stop reading. */
  close(): Promise<void>;
}

/** The stores of an execution's output. */
export type OutputStores = Readonly<Record<StreamName, OutputStore>>;

/** What an execution wrote, and writes. */
export class ExecutionOutput {
  readonly #stores: OutputStores;
  readonly #log: Logger;
  #readers: readonly OutputReader[] = [];

  private constructor(stores: OutputStores, log: Logger) {
    this.#stores = stores;
    this.#log = log;
  }

  static async open(directory: string, rules: OutputRules, log: Logger): Promise<ExecutionOutput> {
    const stdout = await OutputStore.open(directory, "stdout", rules);
    const stderr = await OutputStore.open(directory, "stderr", rules);
    return new ExecutionOutput({ stdout, stderr }, log);
  }

  /** Begin to take what it writes, once. */
  take(open: (stores: OutputStores) => readonly OutputReader[]): void {
    if (this.#readers.length > 0) return;
    try {
      this.#readers = open(this.#stores);
    } catch (error) {
      this.#log.error({ err: error }, "output of an execution cannot be read");
    }
  }

  /** Whether all is written that it will ever write; true for one that is not being read. */
  get isSettled(): boolean {
    return this.#readers.every(({ isDone }) => isDone);
  }

  read(name: StreamName, offset: number, limitBytes: number): Promise<Piece> {
    return this.#stores[name].read(offset, limitBytes);
  }

  /** Where a stream ends now. */
  end(name: StreamName): number {
    return this.#stores[name].end;
  }

  /** Stop reading. */
  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.close()));
  }
}
