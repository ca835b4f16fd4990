import type { Dice } from "./dice.ts";

/** What is known of the fleet: texts that mean something to it, by the name of the field that holds such. */
export type Live = ReadonlyMap<string, readonly string[]>;

/**
 * How much of a case is what no client would send. Most have one such thing: of two, the one that is refused first
 * hides the other. Some have none, and some are wild.
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
 * Items of all lists of a case that may have many. Lists of lists would be millions, and a client that makes them for
 * seconds leaves the server with a silent connection of another case, which it ends.
 */
const MOST_ITEMS = 3_000;
/** A list may always have so many. */
export const A_FEW = 3;

/** What decides the values of one case. */
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

  /** Whether this one is to be nasty; `weight` makes it rarer. */
  isNasty(weight = 1): boolean {
    if (this.#left <= 0 || !this.dice.chance(this.#share * weight)) return false;
    this.#left -= 1;
    return true;
  }

  /** How many of so many items a list may have. */
  items(wanted: number): number {
    const granted = Math.min(wanted, Math.max(A_FEW, this.#items));
    this.#items -= granted;
    return granted;
  }
}
