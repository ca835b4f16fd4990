import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Figure } from "./report.ts";

/** How much to measure. Use small numbers only to try a benchmark out, because they give no valid results. */
export interface BenchSize {
  /**
   * The number of agents whose streams are held open. A process could open 20,000 files on the machine where the
   * default was chosen.
   */
  readonly agents: number;
  /** The number of nodes in the store while listing nodes is measured. */
  readonly nodes: number;
  /** The number of events in the log while watching the log is measured. */
  readonly events: number;
  /** The time between two Beats of an agent in a large fleet. */
  readonly intervalMs: number;
  /** How many hours to simulate. */
  readonly hours: number;
  /** The seed of all random numbers. */
  readonly seed: number;
  /** The time in milliseconds during which a rate is measured. */
  readonly durationMs: number;
}

/** A benchmark: one row of the project's performance table. */
export interface Bench {
  readonly name: string;
  readonly title: string;
  run(context: BenchContext): Promise<readonly Figure[]>;
}

/** The surroundings of one benchmark: its own folder, and the functions to call when it ends. */
export class BenchContext {
  readonly size: BenchSize;
  /** The folder, which is removed when the benchmark ends. */
  readonly directory: string = mkdtempSync(join(tmpdir(), "rollcall-bench-"));
  readonly #endings: (() => Promise<void>)[] = [];

  constructor(size: BenchSize) {
    this.size = size;
  }

  /**
   * Register a function to call when the benchmark ends or is interrupted. The functions are called in reverse
   * order.
   */
  atEnd(end: () => Promise<void>): void {
    this.#endings.push(end);
  }

  /** Print progress for people. The program that runs the benchmark prints the results. */
  progress(message: string): void {
    console.error(`  ${message}`);
  }

  /** Call all registered functions. If one fails, report the failure and call the others. */
  async end(): Promise<void> {
    for (const end of this.#endings.splice(0).reverse()) {
      await end().catch((error: unknown) => this.progress(`could not end cleanly: ${error}`));
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}
