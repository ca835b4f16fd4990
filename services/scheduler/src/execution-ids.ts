import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARACTERS = 10;
const RANDOM_CHARACTERS = 16;

/** Makes random bytes; node:crypto's by default. */
export type RandomBytes = (size: number) => Uint8Array;

/**
 * Makes ids of executions: 26 characters of Crockford's base 32, ordered by time. Each is greater than all before and
 * than those that it was told of, whatever the clock says.
 */
export class ExecutionIds {
  readonly #random: RandomBytes;
  #last = "";

  constructor(random: RandomBytes = randomBytes) {
    this.#random = random;
  }

  /** There is an id: none that is made from now on is less than it. */
  saw(id: string): void {
    if (id > this.#last) this.#last = id;
  }

  /** An id of this time, in milliseconds since 1970. */
  make(nowMs: number): string {
    const fresh = executionIdAt(nowMs, this.#random);
    this.#last = fresh > this.#last ? fresh : successor(this.#last);
    return this.#last;
  }
}

/** An id of this time. Two of one millisecond are in no particular order. */
export function executionIdAt(nowMs: number, random: RandomBytes = randomBytes): string {
  let time = "";
  for (let left = nowMs, place = 0; place < TIME_CHARACTERS; place += 1) {
    time = `${ALPHABET[left % 32]}${time}`;
    left = Math.floor(left / 32);
  }
  return `${time}${[...random(RANDOM_CHARACTERS)].map((byte) => ALPHABET[byte % 32]).join("")}`;
}

/** The least id that is greater than another. */
function successor(id: string): string {
  for (let place = id.length - 1; place >= 0; place -= 1) {
    const digit = ALPHABET.indexOf(id[place] ?? "");
    if (digit < ALPHABET.length - 1) {
      return `${id.slice(0, place)}${ALPHABET[digit + 1]}${"0".repeat(id.length - place - 1)}`;
    }
  }
  throw new Error("the ids of executions are used up");
}
