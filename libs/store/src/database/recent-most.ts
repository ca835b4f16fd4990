import { systemClock } from "@rollcall/process";

const WINDOW_MS = 15_000;

/**
 * The highest value within the last 15 to 30 seconds. Samples of the current value would miss
 * most peaks.
 */
export class RecentMost {
  #window = 0;
  #present = 0;
  #before = 0;

  note(value: number): void {
    this.#move();
    this.#present = Math.max(this.#present, value);
  }

  most(): number {
    this.#move();
    return Math.max(this.#present, this.#before);
  }

  #move(): void {
    const window = Math.floor(systemClock.nowMs() / WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#present : 0;
    this.#present = 0;
    this.#window = window;
  }
}
