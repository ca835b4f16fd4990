import type { BrakeSums, GroupSum } from "./brake-sums.ts";

/** How long a group is looked back at while nothing is wrong. */
export const BRAKE_WINDOW_MS = 60_000;
/** Samples of the window at most, so that looking more often costs no memory. */
const SAMPLES = 60;
/**
 * A report may begin before the previous one is read: only the second one after a loss is certain to follow it.
 */
const REPORTS_TO_SETTLE = 2;
const MOST_UNSETTLED_LOOKS = 64;

interface Sample {
  readonly atMs: number;
  readonly lastLoss: number;
  readonly healthy: ReadonlyMap<string, number>;
}

interface Look {
  readonly lastLoss: number;
  readonly sequences: ReadonlyMap<string, number>;
}

/**
 * What the brake remembers of the last minute: how many nodes were HEALTHY when it began, and which losses are of it.
 */
export class BrakeHistory {
  #samples: readonly Sample[];
  #looks: readonly Look[] = [];
  #lastLoss: number;
  #settled = 0;

  /** @param start `lossBefore` is the last loss that is older than the window. */
  constructor(start: { readonly atMs: number; readonly lossBefore: number }) {
    const { atMs, lossBefore } = start;
    // How many there were before is not known: none, as far as the window is concerned.
    this.#samples = [{ atMs, lastLoss: lossBefore, healthy: new Map() }];
    this.#lastLoss = lossBefore;
  }

  /** Losses above it are of the window. */
  get windowLoss(): number {
    return this.#samples[0]?.lastLoss ?? 0;
  }

  /** Losses up to it are older than what every live replica has reported since. */
  get settledLoss(): number {
    return this.#settled;
  }

  /** The highest loss seen. */
  get lastLoss(): number {
    return this.#lastLoss;
  }

  /** How many nodes of a group were HEALTHY when the window began; 0 when it was not observed then. */
  healthyAtStart(group: string): number {
    return this.#samples[0]?.healthy.get(group) ?? 0;
  }

  /** Take in one look at the record. */
  observe(
    look: {
      readonly lastLoss: number;
      readonly reports: ReadonlyMap<string, BrakeSums>;
      readonly totals: ReadonlyMap<string, GroupSum>;
    },
    nowMs: number,
  ): void {
    this.#lastLoss = Math.max(this.#lastLoss, look.lastLoss);
    this.#settle(look.reports);
    const last = this.#samples.at(-1);
    if (last !== undefined && nowMs - last.atMs < BRAKE_WINDOW_MS / SAMPLES) return;
    const healthy = new Map([...look.totals].map(([group, sum]) => [group, sum.healthy]));
    const samples = [...this.#samples, { atMs: nowMs, lastLoss: this.#lastLoss, healthy }];
    const first = samples.findLastIndex(({ atMs }) => nowMs - atMs >= BRAKE_WINDOW_MS);
    this.#samples = samples.slice(Math.max(0, first));
  }

  #settle(reports: ReadonlyMap<string, BrakeSums>): void {
    const sequences = new Map([...reports].map(([id, { sequence }]) => [id, sequence]));
    const isSettled = (look: Look) =>
      [...sequences].every(([id, sequence]) => {
        const then = look.sequences.get(id);
        // One that came later has reported later.
        return then === undefined || sequence >= then + REPORTS_TO_SETTLE;
      });
    // Without a report nothing is known.
    const settled = sequences.size === 0 ? -1 : this.#looks.findLastIndex(isSettled);
    const look = this.#looks[settled];
    if (look !== undefined) this.#settled = Math.max(this.#settled, look.lastLoss);
    const waiting = this.#looks.slice(settled + 1);
    if (waiting.length === MOST_UNSETTLED_LOOKS) waiting.pop();
    this.#looks = [...waiting, { lastLoss: this.#lastLoss, sequences }];
  }
}
