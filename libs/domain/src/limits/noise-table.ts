import { addressGroup } from "./client-address.ts";

/** Limits on log lines about anonymous clients. */
export interface NoiseLimits {
  /** Maximum number of lines to write per source and subject. Further lines are only counted. */
  readonly firstLines: number;
  /** Maximum number of lines to write per interval for all sources together. Further lines are only counted. */
  readonly linesAnInterval: number;
  /** Time between two summaries. */
  readonly intervalMs: number;
  /** Maximum number of keys that are counted separately. All others are counted together. */
  readonly maxKeys: number;
  /**
   * Maximum number of summaries at the end of an interval. Keys with the largest counts come first. The remaining keys
   * are combined into one more summary.
   */
  readonly maxSummaries: number;
}

/** Defaults for a log that people read: usually a handful of lines per minute, at worst about 120. */
const DEFAULT_NOISE_LIMITS: NoiseLimits = {
  firstLines: 5,
  linesAnInterval: 100,
  intervalMs: 60_000,
  maxKeys: 1_000,
  maxSummaries: 20,
};

/** The number of lines left out since the previous summary. */
export interface NoiseSummary {
  /** The source (an address or network) and the subject; null for the sum of all other lines. */
  readonly key: { readonly source: string; readonly what: string } | null;
  readonly leftOut: number;
}

interface Entry {
  readonly source: string;
  readonly what: string;
  written: number;
  leftOut: number;
  isActive: boolean;
}

/**
 * Decides which lines about anonymous clients are written: the first few per source and subject, then only a count at
 * the end of each interval. After a whole interval without lines, a key starts again. Memory and the number of lines
 * are bounded, and every line that is left out is counted.
 */
export class NoiseTable {
  readonly #limits: NoiseLimits;
  readonly #entries = new Map<string, Entry>();
  #lines = 0;
  #othersLeftOut = 0;
  #intervalFromMs: number | null = null;

  constructor(limits: NoiseLimits = DEFAULT_NOISE_LIMITS) {
    this.#limits = limits;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Whether to write a line about something that a peer caused. If not, the line is counted. summarise() must be
   * called at or before summaryDueMs().
   *
   * @param peer HOST:PORT.
   */
  note(peer: string, what: string, nowMs: number): boolean {
    this.#intervalFromMs ??= nowMs;
    const entry = this.#entryOf(addressGroup(peer), what);
    if (entry === null) {
      if (this.#takeLine()) return true;
      this.#othersLeftOut += 1;
      return false;
    }
    entry.isActive = true;
    if (entry.written < this.#limits.firstLines && this.#takeLine()) {
      entry.written += 1;
      return true;
    }
    // This key, or all keys together, has reached the limit of lines. From now on, only count this key.
    entry.written = this.#limits.firstLines;
    entry.leftOut += 1;
    return false;
  }

  /** When the interval ends; null if no summary is due. */
  summaryDueMs(): number | null {
    return this.#intervalFromMs === null ? null : this.#intervalFromMs + this.#limits.intervalMs;
  }

  /**
   * End the interval and return summaries of the lines left out in it. If there are still keys to count, the next
   * interval starts now.
   */
  summarise(nowMs: number): readonly NoiseSummary[] {
    const counted = [...this.#entries.values()].filter(({ leftOut }) => leftOut > 0);
    counted.sort((one, other) => other.leftOut - one.leftOut);
    const shown = counted.slice(0, this.#limits.maxSummaries);
    const rest = counted.slice(this.#limits.maxSummaries);
    const restLeftOut = rest.reduce((sum, { leftOut }) => sum + leftOut, this.#othersLeftOut);
    const summaries: NoiseSummary[] = shown.map(({ source, what, leftOut }) => ({
      key: { source, what },
      leftOut,
    }));
    if (restLeftOut > 0) summaries.push({ key: null, leftOut: restLeftOut });
    for (const [key, entry] of this.#entries) {
      if (!entry.isActive) this.#entries.delete(key);
      entry.isActive = false;
      entry.leftOut = 0;
    }
    this.#lines = 0;
    this.#othersLeftOut = 0;
    this.#intervalFromMs = this.#entries.size > 0 ? nowMs : null;
    return summaries;
  }

  #entryOf(source: string, what: string): Entry | null {
    const key = `${source} ${what}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#limits.maxKeys) return null;
    const entry = { source, what, written: 0, leftOut: 0, isActive: true };
    this.#entries.set(key, entry);
    return entry;
  }

  #takeLine(): boolean {
    if (this.#lines >= this.#limits.linesAnInterval) return false;
    this.#lines += 1;
    return true;
  }
}
