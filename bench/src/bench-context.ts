import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Figure } from "./report.ts";

/** How much to measure. Small numbers are for trying a benchmark out, not for quoting. */
export interface BenchSize {
  /** Agents whose streams are held. A process may open 20,000 files where this was tuned. */
  readonly agents: number;
  /** Nodes in the record when listing is measured. */
  readonly nodes: number;
  /** Events in the log when watching is measured. */
  readonly events: number;
  /** Between two Beats of an agent of a large fleet. */
  readonly intervalMs: number;
  /** Simulated time. */
  readonly hours: number;
  /** Of everything that is drawn at random. */
  readonly seed: number;
  /** How long a rate is measured. */
  readonly durationMs: number;
}

/** A benchmark: one row of the project's performance table. */
export interface Bench {
  readonly name: string;
  readonly title: string;
  run(context: BenchContext): Promise<readonly Figure[]>;
}

/** What a benchmark runs in: a folder of its own, and a place to say what must end with it. */
export class BenchContext {
  readonly size: BenchSize;
  /** Removed at the end. */
  readonly directory: string = mkdtempSync(join(tmpdir(), "rollcall-bench-"));
  readonly #endings: (() => Promise<void>)[] = [];

  constructor(size: BenchSize) {
    this.size = size;
  }

  /** Has something ended when the benchmark is over or interrupted: the last thing begun is the first to end. */
  atEnd(end: () => Promise<void>): void {
    this.#endings.push(end);
  }

  /** Tells people what goes on. Figures are printed by the program that runs the benchmark. */
  progress(message: string): void {
    console.error(`  ${message}`);
  }

  /** Ends everything that was begun. What cannot be ended is reported and left behind, so that the rest still ends. */
  async end(): Promise<void> {
    for (const end of this.#endings.splice(0).reverse()) {
      await end().catch((error: unknown) => this.progress(`could not end cleanly: ${error}`));
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}
