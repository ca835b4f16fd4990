/** Letters of Crockford's base 32, in lower case. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_DIGITS = 10;
const RANDOM_DIGITS = 16;
/** Of the random digits, those that change seldom. */
const HEAD_DIGITS = 13;

/** What an execution's id looks like. */
export const EXECUTION_ID_PATTERN = /^[0-9a-hjkmnp-tv-z]{26}$/;

/** The wall time that an id begins with, in milliseconds; null for what is no id of a scheduler. */
export function executionIdTimeMs(id: string): number | null {
  if (!EXECUTION_ID_PATTERN.test(id)) return null;
  return [...id.slice(0, TIME_DIGITS)].reduce((sum, digit) => sum * 32 + DIGITS.indexOf(digit), 0);
}

/**
 * Makes ids of executions: 26 characters, the time in milliseconds first, so that they sort by it. Each is greater than
 * the one before, also within a millisecond and when the clock was set back.
 */
export class ExecutionIds {
  #atMs = 0;
  #digits: number[] = [];
  /** All but the last digits of the id before: they change seldom. */
  #head = "";

  /** @param after ids are greater than it: the greatest that the record has; "" for none. */
  constructor(after: string) {
    const atMs = executionIdTimeMs(after);
    if (atMs === null) return;
    this.#atMs = atMs;
    this.#digits = [...after.slice(TIME_DIGITS)].map((digit) => DIGITS.indexOf(digit));
  }

  /**
   * Make an id.
   *
   * @param random01 gives numbers from 0 to less than 1, of which each has 5 good bits at least.
   */
  next(nowMs: number, random01: () => number): string {
    let isHeadNew = this.#head === "";
    if (nowMs > this.#atMs || this.#digits.length === 0) {
      isHeadNew = true;
      this.#atMs = Math.max(nowMs, this.#atMs);
      this.#digits = Array.from({ length: RANDOM_DIGITS }, () => Math.floor(random01() * 32));
      // Room to count within this millisecond.
      this.#digits[0] = (this.#digits[0] ?? 0) & 15;
    } else if (this.#countUp() < HEAD_DIGITS) {
      isHeadNew = true;
    }
    if (isHeadNew) this.#head = this.#headText();
    // One piece of text: what is put together gradually keeps its parts in memory.
    return [this.#head, ...this.#digits.slice(HEAD_DIGITS).map((digit) => DIGITS[digit])].join("");
  }

  /** The first of the digits that have changed. */
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
