/** A period of real time in which a replica could not receive, or was not sure of its lease. */
interface Stretch {
  fromMs: number;
  toMs: number;
  /** Number of recorded periods that were joined into this one. */
  causes: number;
}

/** The stretches within a window of real time. */
export interface Unheard {
  readonly totalMs: number;
  readonly stretches: number;
}

/**
 * The times when a replica could not receive, as the union of all recorded stretches. The expected silence is
 * computed from them, independently of the detector's own state.
 */
export class UnheardTime {
  /** Disjoint, and in order of time. */
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

  /** The total length and the number of stretches between two times. */
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
