import { addressGroup } from "./client-address.ts";

/** How much of what strangers can cause is logged. */
export interface NoiseLimits {
  /** Lines of one source about one thing before the rest of it is counted. */
  readonly firstLines: number;
  /** Lines of all sources in one interval; what comes beyond is counted. */
  readonly linesAnInterval: number;
  /** Time between two summaries. */
  readonly intervalMs: number;
  /** Sources and things that are counted by themselves; further ones are counted together. */
  readonly maxKeys: number;
  /** Summaries at the end of an interval, the largest counts first; the others are one more together. */
  readonly maxSummaries: number;
}

/** What is good for a log that people read: at worst some 120 lines a minute, and as a rule a handful. */
const DEFAULT_NOISE_LIMITS: NoiseLimits = {
  firstLines: 5,
  linesAnInterval: 100,
  intervalMs: 60_000,
  maxKeys: 1_000,
  maxSummaries: 20,
};

/** What was left out since the summary before. */
export interface NoiseSummary {
  /** Of which address or network, and about what; null where it is of several and about several things. */
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
 * Decides which lines about strangers are written: the first few of each source about each thing, and after that a
 * count at the end of each interval for as long as it goes on. A key that was silent for a whole interval begins again
 * with lines. Memory and lines are bounded whatever comes; nothing is left out without being counted.
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
   * Whether to write a line about something that a peer caused. Call summarise() at summaryDueMs(), or before it.
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
    // Whether its lines are used up or those of all: it goes on as a count.
    entry.written = this.#limits.firstLines;
    entry.leftOut += 1;
    return false;
  }

  /** When the interval ends; null while there is nothing to wait for. */
  summaryDueMs(): number | null {
    return this.#intervalFromMs === null ? null : this.#intervalFromMs + this.#limits.intervalMs;
  }

  /** End the interval: what was left out in it. The next one begins now, if there is anything left to look after. */
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
