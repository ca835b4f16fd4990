import type { BrakeSums, GroupSum } from "./brake-sums.ts";

/** How far back the window of losses reaches during normal operation, in milliseconds. */
export const BRAKE_WINDOW_MS = 60_000;
/** Maximum number of samples in the window. Limits memory when scans are frequent. */
const SAMPLES = 60;
/**
 * How many reports a replica must send after a loss to settle it. The replica may have started the first report
 * before the loss; only the second is certain to include it.
 */
const REPORTS_TO_SETTLE = 2;
const MAX_UNSETTLED_SCANS = 64;

interface Sample {
  readonly atMs: number;
  readonly lastLoss: number;
  readonly healthy: ReadonlyMap<string, number>;
}

interface Look {
  readonly lastLoss: number;
  readonly sequences: ReadonlyMap<string, number>;
}

/** Remembers the last minute: how many nodes were HEALTHY at its start, and which losses happened during it. */
export class BrakeHistory {
  #samples: readonly Sample[];
  #looks: readonly Look[] = [];
  #lastLoss: number;
  #settled = 0;

  /** @param start `lossBefore` is the number of the last loss before the window. */
  constructor(start: { readonly atMs: number; readonly lossBefore: number }) {
    const { atMs, lossBefore } = start;
    // Count 0 nodes, because it is unknown how many nodes were HEALTHY before the start.
    this.#samples = [{ atMs, lastLoss: lossBefore, healthy: new Map() }];
    this.#lastLoss = lossBefore;
  }

  /** Losses with numbers above this one are in the window. */
  get windowLoss(): number {
    return this.#samples[0]?.lastLoss ?? 0;
  }

  /** Losses up to this number are settled: every live replica's latest report was made after them. */
  get settledLoss(): number {
    return this.#settled;
  }

  /** The highest loss number so far. */
  get lastLoss(): number {
    return this.#lastLoss;
  }

  /**
   * The number of a group's nodes that were HEALTHY at the start of the window; 0 if the group was not observed
   * at that time.
   */
  healthyAtStart(group: string): number {
    return this.#samples[0]?.healthy.get(group) ?? 0;
  }

  /** Add the result of one scan. */
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
        // A replica that the earlier scan did not see appeared after that scan, so any report of it is new enough.
        return then === undefined || sequence >= then + REPORTS_TO_SETTLE;
      });
    // Without reports, it is unknown which losses are settled.
    const settled = sequences.size === 0 ? -1 : this.#looks.findLastIndex(isSettled);
    const look = this.#looks[settled];
    if (look !== undefined) this.#settled = Math.max(this.#settled, look.lastLoss);
    const waiting = this.#looks.slice(settled + 1);
    if (waiting.length === MAX_UNSETTLED_SCANS) waiting.pop();
    this.#looks = [...waiting, { lastLoss: this.#lastLoss, sequences }];
  }
}
