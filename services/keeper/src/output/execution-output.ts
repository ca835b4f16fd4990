import { join } from "node:path";
import type { Logger } from "@rollcall/process";
import type { OutputRules } from "./output-plan.ts";
import { OutputPump } from "./output-pump.ts";
import { OutputStore, type Piece, type StreamName } from "./output-store.ts";

const STREAMS: readonly StreamName[] = ["stdout", "stderr"];

/** What an execution wrote, and writes. */
export class ExecutionOutput {
  readonly #directory: string;
  readonly #stores: Readonly<Record<StreamName, OutputStore>>;
  readonly #log: Logger;
  #pumps: readonly OutputPump[] = [];

  private constructor(directory: string, stores: Readonly<Record<StreamName, OutputStore>>, log: Logger) {
    this.#directory = directory;
    this.#stores = stores;
    this.#log = log;
  }

  static async open(directory: string, rules: OutputRules, log: Logger): Promise<ExecutionOutput> {
    const stdout = await OutputStore.open(directory, "stdout", rules);
    const stderr = await OutputStore.open(directory, "stderr", rules);
    return new ExecutionOutput(directory, { stdout, stderr }, log);
  }

  /** Begin to take what it writes, once. Its pipes must have their writers. */
  pump(): void {
    if (this.#pumps.length > 0) return;
    try {
      this.#pumps = STREAMS.map((name) => {
        return new OutputPump(join(this.#directory, `${name}.pipe`), this.#stores[name], this.#log);
      });
    } catch (error) {
      this.#log.error({ err: error }, "output of an execution cannot be read");
    }
  }

  /** Whether all is written that it will ever write; true for one that is not being read. */
  get isSettled(): boolean {
    return this.#pumps.every(({ isDone }) => isDone);
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
    await Promise.all(this.#pumps.map((pump) => pump.close()));
  }
}
