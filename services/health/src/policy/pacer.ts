import { mayAdmit, nextFactor, type PacedGroup, pacedIntervalMs } from "@rollcall/domain";

/** Sessions that are paced alike. Counted by the pacer alone. */
export interface PacedSessions extends PacedGroup {
  sessions: number;
}

/** What a newcomer would beat at, and at the slowest. */
export type PacedIntervals = Pick<PacedGroup, "intervalMs" | "longestMs">;

/**
 * Keeps the heartbeats of one replica within its budget: with more sessions each beats less often, as far as its policy
 * allows.
 */
export class Pacer {
  readonly #budgetPerSecond: number;
  /** As many as there are different intervals, not as there are sessions. */
  readonly #groups = new Map<string, PacedSessions>();
  #factor = 1;
  #version = 0;
  #isChanged = false;

  constructor(heartbeatsPerSecond: number) {
    this.#budgetPerSecond = heartbeatsPerSecond;
  }

  /** Rises whenever intervals have changed. */
  get version(): number {
    return this.#version;
  }

  /** By how much intervals are stretched; 1 for not at all. */
  get factor(): number {
    return this.#factor;
  }

  /** Whether a further session fits into the budget, every interval stretched as far as it may be. */
  mayAdmit(newcomer: PacedIntervals): boolean {
    return mayAdmit(this.#groups.values(), newcomer, this.#budgetPerSecond);
  }

  /** Count a session. */
  join({ intervalMs, longestMs }: PacedIntervals): PacedSessions {
    const key = `${intervalMs}/${longestMs}`;
    const group = this.#groups.get(key) ?? { intervalMs, longestMs, sessions: 0 };
    this.#groups.set(key, group);
    group.sessions += 1;
    this.#isChanged = true;
    return group;
  }

  /** Count it no more. */
  leave(group: PacedSessions): void {
    group.sessions -= 1;
    if (group.sessions === 0) this.#groups.delete(`${group.intervalMs}/${group.longestMs}`);
    this.#isChanged = true;
  }

  /** The interval of a session, in milliseconds. */
  intervalMs(intervals: PacedIntervals): number {
    return pacedIntervalMs(intervals, this.#factor);
  }

  /** Follow the number of sessions. Call it each tick; it costs nothing where none has come or gone. */
  adjust(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const factor = nextFactor(this.#factor, [...this.#groups.values()], this.#budgetPerSecond);
    if (factor === this.#factor) return;
    this.#factor = factor;
    this.#version += 1;
  }
}
