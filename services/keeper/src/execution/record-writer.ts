import type { Logger } from "@rollcall/process";
import type { Execution } from "../journal/execution-entry.ts";
import type { KeeperServices } from "./keeper-services.ts";

/** Dependencies of a record writer. */
export interface RecordWriterOptions extends Pick<KeeperServices, "journal" | "onChange"> {
  readonly log: Logger;
  /** The record as it is now. */
  readonly record: () => Execution;
}

/** Writes the record of one execution to the journal, one write after the other. */
export class RecordWriter {
  readonly #options: RecordWriterOptions;
  #writing: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
  }

  /** Resolves when all requested writes are done or have failed. */
  get done(): Promise<void> {
    return this.#writing;
  }

  /** Write the record, and report the change even if the write fails: the control plane waits for it. */
  save(): void {
    const { journal, onChange, log, record } = this.#options;
    this.#writing = this.#writing.then(async () => {
      const current = record();
      try {
        await journal.save(current);
        this.#hasFailed = false;
      } catch (error) {
        this.#hasFailed = true;
        log.error({ err: error }, "cannot store execution");
      }
      onChange(current);
    });
  }

  /** Repeat the last write if it failed. */
  repeat(): void {
    if (this.#hasFailed) this.save();
  }
}
