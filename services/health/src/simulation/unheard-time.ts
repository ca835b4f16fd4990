/** A stretch of real time in which a replica could not hear, or was not sure of its lease. */
interface Stretch {
  fromMs: number;
  toMs: number;
  /** How many have been joined into it. */
  causes: number;
}

/** What a window of real time contains. */
export interface Unheard {
  readonly totalMs: number;
  readonly stretches: number;
}

/**
 * When a replica could not hear: the plain union of stretches as they were caused, from which silence can be worked out
 * without any of the detector's own bookkeeping.
 */
export class UnheardTime {
  /** Apart from each other, in order. */
  readonly #stretches: Stretch[] = [];

  add(fromMs: number, toMs: number): void {
    const whole = { fromMs, toMs, causes: 1 };
    for (let last = this.#stretches.at(-1); last !== undefined; last = this.#stretches.at(-1)) {
      if (last.toMs < whole.fromMs) break;
      whole.fromMs = Math.min(whole.fromMs, last.fromMs);
      whole.toMs = Math.max(whole.toMs, last.toMs);
      whole.causes += last.causes;
      this.#stretches.pop();
    }
    this.#stretches.push(whole);
  }

  /** What of it lies between two times. */
  within(fromMs: number, toMs: number): Unheard {
    let totalMs = 0;
    let stretches = 0;
    for (let index = this.#stretches.length - 1; index >= 0; index -= 1) {
      const stretch = this.#stretches[index] as Stretch;
      if (stretch.toMs <= fromMs) break;
      totalMs += Math.max(0, Math.min(toMs, stretch.toMs) - Math.max(fromMs, stretch.fromMs));
      stretches += stretch.causes;
    }
    return { totalMs, stretches };
  }
}
