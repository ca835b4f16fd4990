import { mayAdmit, nextFactor, type PacedGroup, pacedIntervalMs } from "@rollcall/domain";

/** Sessions with the same intervals. Only the pacer changes the count. */
export interface PacedSessions extends PacedGroup {
  sessions: number;
}

/** The heartbeat interval of a new session, and the longest interval that its policy allows. */
export type PacedIntervals = Pick<PacedGroup, "intervalMs" | "longestMs">;

/**
 * Keeps the heartbeats of one replica within its budget. As sessions are added, it stretches their heartbeat
 * intervals as far as their policies allow.
 */
export class Pacer {
  readonly #budgetPerSecond: number;
  /** One group for each distinct pair of intervals, not for each session. */
  readonly #groups = new Map<string, PacedSessions>();
  #factor = 1;
  #version = 0;
  #isChanged = false;

  constructor(heartbeatsPerSecond: number) {
    this.#budgetPerSecond = heartbeatsPerSecond;
  }

  /** A number that increases when intervals change. */
  get version(): number {
    return this.#version;
  }

  /** Stretch factor of the intervals; 1 for none. */
  get factor(): number {
    return this.#factor;
  }

  /** Whether another session fits into the budget with every interval at its longest. */
  mayAdmit(newcomer: PacedIntervals): boolean {
    return mayAdmit(this.#groups.values(), newcomer, this.#budgetPerSecond);
  }

  /** Start counting a session. */
  join({ intervalMs, longestMs }: PacedIntervals): PacedSessions {
    const key = `${intervalMs}/${longestMs}`;
    const group = this.#groups.get(key) ?? { intervalMs, longestMs, sessions: 0 };
    this.#groups.set(key, group);
    group.sessions += 1;
    this.#isChanged = true;
    return group;
  }

  /** Stop counting a session. */
  leave(group: PacedSessions): void {
    group.sessions -= 1;
    if (group.sessions === 0) this.#groups.delete(`${group.intervalMs}/${group.longestMs}`);
    this.#isChanged = true;
  }

  /** The interval of a session, in milliseconds. */
  intervalMs(intervals: PacedIntervals): number {
    return pacedIntervalMs(intervals, this.#factor);
  }

  /**
   * Adjust to the number of sessions. Must be called each tick; costs nothing while the number is unchanged.
   */
  adjust(): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const factor = nextFactor(this.#factor, [...this.#groups.values()], this.#budgetPerSecond);
    if (factor === this.#factor) return;
    this.#factor = factor;
    this.#version += 1;
  }
}
