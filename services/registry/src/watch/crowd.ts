import { setImmediate } from "node:timers/promises";
import type { Clock } from "@rollcall/process";

/** What is woken. It does little at once, and throws nothing. */
export interface Sleeper {
  readonly wake: () => void;
}

/** So many are woken before the process turns to others, and what was written for them leaves it. */
const AT_ONCE = 100;
/** A pause after a round, as a part of the time that it took. */
const PAUSE_SHARE = 0.5;
const LONGEST_PAUSE_MS = 20;

/**
 * Many that wait for the same thing. They are woken in rounds, a part of them at a time: others have their turn in
 * between. After the round of a large crowd there is a pause, half as long as it took, 20 ms at most: a message costs
 * about the same with one event as with several, so what comes meanwhile goes along.
 */
export class Crowd {
  readonly #clock: Clock;
  readonly #ending: AbortSignal;
  readonly #members = new Set<Sleeper>();
  #isDue = false;
  #isBusy = false;

  /** `ending`: ends a pause, and with it the rounds. */
  constructor(clock: Clock, ending: AbortSignal) {
    this.#clock = clock;
    this.#ending = ending;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Be woken with the others until the answer is called. */
  join(member: Sleeper): () => void {
    this.#members.add(member);
    return () => {
      this.#members.delete(member);
    };
  }

  /**
   * Wake all, as soon as what runs now has returned: what else hears of the same thing has heard of it then. While a
   * round is under way another one follows it.
   */
  wake(): void {
    this.#isDue = true;
    if (!this.#isBusy) void this.#rounds();
  }

  /** Wake all before this returns. */
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
    // It rejects only when all ends.
    await this.#clock.sleep(pauseMs, this.#ending).catch(() => {});
  }
}
