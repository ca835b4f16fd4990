import { seededRandom } from "../../libs/domain/src/seeded-random.ts";

/**
 * The random choices of one case. The same seed and number give the same choices, regardless of the
 * cases that ran before.
 */
export class Dice {
  readonly #next: () => number;

  constructor(seed: number, caseNumber: number) {
    this.#next = seededRandom(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(caseNumber + 1, 0x85ebca6b));
  }

  /** Return true with this probability. */
  chance(share: number): boolean {
    return this.#next() < share;
  }

  /** Return an integer in a range that includes both bounds. */
  int(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1));
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.int(0, 255));
  }
}
