/** The digits of Crockford's base 32, in lower case. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;
/** Number of digits at the start of an id that rarely change. */
const HEAD_DIGITS = 13;

/** The format of an execution's id. */
export const EXECUTION_ID_PATTERN = /^[0-9a-hjkmnp-tv-z]{26}$/;

/** The time that an id contains, in milliseconds of wall time; null if no scheduler created the id. */
export function executionIdTimeMs(id: string): number | null {
  if (!EXECUTION_ID_PATTERN.test(id)) return null;
  return [...id.slice(0, TIME_DIGITS)].reduce((sum, digit) => sum * 32 + DIGITS.indexOf(digit), 0);
}

/**
 * Creates execution ids of 26 characters. An id starts with the time in milliseconds, so that ids sort by time. Each id
 * is greater than the one before, even within the same millisecond and after the clock was set back.
 */
export class ExecutionIds {
  #atMs = 0;
  #digits: number[] = [];
  /** The previous id without its last digits. Caching it saves work, because it rarely changes. */
  #head = "";

  /** @param after the greatest stored id; "" for none. New ids are greater. */
  constructor(after: string) {
    const atMs = executionIdTimeMs(after);
    if (atMs === null) return;
    this.#atMs = atMs;
    this.#digits = [...after.slice(TIME_DIGITS)].map((digit) => DIGITS.indexOf(digit));
  }

  /**
   * Create an id.
   *
   * @param random01 returns random numbers from 0 to less than 1, with at least 5 good bits each.
   */
  next(nowMs: number, random01: () => number): string {
    let isHeadNew = this.#head === "";
    if (nowMs > this.#atMs || this.#digits.length === 0) {
      isHeadNew = true;
      this.#atMs = Math.max(nowMs, this.#atMs);
      this.#digits = Array.from({ length: RANDOM_DIGITS }, () => Math.floor(random01() * 32));
      // Start low, so that there is room to count up within this millisecond.
      this.#digits[0] = (this.#digits[0] ?? 0) & 15;
    } else if (this.#countUp() < HEAD_DIGITS) {
      isHeadNew = true;
    }
    if (isHeadNew) this.#head = this.#headText();
    // Join the parts in one step, because a string that is concatenated step by step keeps all its parts in memory.
    return [this.#head, ...this.#digits.slice(HEAD_DIGITS).map((digit) => DIGITS[digit])].join("");
  }

  /** Increase the digits by one. Returns the index of the first digit that changed. */
  #countUp(): number {
    for (let place = RANDOM_DIGITS - 1; place >= 0; place -= 1) {
      const digit = this.#digits[place] ?? 0;
      this.#digits[place] = (digit + 1) % 32;
      if (digit < 31) return place;
    }
    this.#atMs += 1;
    return 0;
  }

  #headText(): string {
    const time: string[] = [];
    for (let rest = this.#atMs; time.length < TIME_DIGITS; rest = Math.floor(rest / 32)) {
      time.unshift(DIGITS[rest % 32] ?? "0");
    }
    return [...time, ...this.#digits.slice(0, HEAD_DIGITS).map((digit) => DIGITS[digit])].join("");
  }
}
