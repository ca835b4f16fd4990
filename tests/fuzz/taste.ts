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

/** What decides the values of one case. */
export class Taste {
  readonly dice: Dice;
  readonly live: Live;
  readonly #share: number;
  #left: number;

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
}
