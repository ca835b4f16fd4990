import type { Dice } from "./dice.ts";

/** Existing values of the fleet, keyed by the name of their field. */
export type Live = ReadonlyMap<string, readonly string[]>;

/**
 * The shares of invalid values in a case, and the maximum number of them. Most cases have at most one, because
 * the refusal of the first one would hide a second one. Some cases have none, and some have many.
 */
const MIXES = [
  { share: 0, most: 0 },
  { share: 0.12, most: 1 },
  { share: 0.25, most: 1 },
  { share: 0.5, most: 1 },
  { share: 0.2, most: 3 },
  { share: 0.5, most: Number.POSITIVE_INFINITY },
] as const;

/**
 * The maximum number of items in all lists of a case. Nested lists could have millions of items. While a client
 * builds such lists for seconds, the server ends its silent connections.
 */
const MOST_ITEMS = 3_000;
/** The number of items that a list can have in any case. */
export const A_FEW = 3;

/** Decides the values of one case. */
export class Taste {
  readonly dice: Dice;
  readonly live: Live;
  readonly #share: number;
  #left: number;
  #items = MOST_ITEMS;

  constructor(dice: Dice, live: Live) {
    this.dice = dice;
    this.live = live;
    const { share, most } = dice.pick(MIXES);
    this.#share = share;
    this.#left = most;
  }

  /** Decide whether to use an invalid value. A `weight` below 1 makes invalid values rarer. */
  isNasty(weight = 1): boolean {
    if (this.#left <= 0 || !this.dice.chance(this.#share * weight)) return false;
    this.#left -= 1;
    return true;
  }

  /** Returns how many of the wanted items a list can get. */
  items(wanted: number): number {
    const granted = Math.min(wanted, Math.max(A_FEW, this.#items));
    this.#items -= granted;
    return granted;
  }
}
