import { setImmediate } from "node:timers/promises";
import type { Clock } from "@rollcall/process";

/** A member to wake. Its callback is short and never throws. */
export interface Sleeper {
  readonly wake: () => void;
}

/** Number of members to wake before other work runs, such as sending the output of these members. */
const AT_ONCE = 100;
/** The pause after a round, as a fraction of the time that the round took. */
const PAUSE_SHARE = 0.5;
const LONGEST_PAUSE_MS = 20;

/**
 * Wakes many members that wait for the same thing. Each round wakes them in parts, so that other work runs in
 * between. After a round of a large crowd, the next round waits for half the time that the round took, up to 20
 * ms. A message with several events costs about the same as a message with one, so events that arrive during the
 * pause are sent together.
 */
export class Crowd {
  readonly #clock: Clock;
  readonly #ending: AbortSignal;
  readonly #members = new Set<Sleeper>();
  #isDue = false;
  #isBusy = false;

  /** @param ending Ends a pause, and all rounds. */
  constructor(clock: Clock, ending: AbortSignal) {
    this.#clock = clock;
    this.#ending = ending;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Add a member. Returns a function that removes it. */
  join(member: Sleeper): () => void {
    this.#members.add(member);
    return () => {
      this.#members.delete(member);
    };
  }

  /**
   * Wake all members once the current callback has returned and other subscribers of the same change have been
   * notified. If a round is in progress, another one follows it.
   */
  wake(): void {
    this.#isDue = true;
    if (!this.#isBusy) void this.#rounds();
  }

  /** Wake all members before this returns. */
  wakeAtOnce(): void {
    for (const { wake } of this.#members) wake();
  }

  async #rounds(): Promise<void> {
    this.#isBusy = true;
    await Promise.resolve();
    while (this.#isDue && !this.#ending.aborted) {
      this.#isDue = false;
      if (this.size <= AT_ONCE) this.wakeAtOnce();
      else await this.#round();
    }
    this.#isBusy = false;
  }

  async #round(): Promise<void> {
    const beginMs = this.#clock.nowMs();
    let woken = 0;
    for (const { wake } of this.#members) {
      wake();
      woken += 1;
      if (woken % AT_ONCE === 0) await setImmediate();
    }
    await setImmediate();
    const pauseMs = Math.min((this.#clock.nowMs() - beginMs) * PAUSE_SHARE, LONGEST_PAUSE_MS);
    // Ignore the rejection, because sleep() rejects only when the signal aborts.
    await this.#clock.sleep(pauseMs, this.#ending).catch(() => {});
  }
}
