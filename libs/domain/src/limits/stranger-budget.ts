import { addressGroup, hostOf } from "./client-address.ts";

/**
 * How much trouble the strangers of one address may make, and how much is remembered. Costs are in tenths of a
 * millisecond of the event loop.
 */
export interface StrangerBudgetLimits {
  /** What may be spent at once by an address that has spent nothing for long. */
  readonly burst: number;
  /** What an address gets back each second. */
  readonly perSecond: number;
  /** The largest debt of an address, which bounds the time until it is paid. */
  readonly mostOwed: number;
  /** Addresses at most; the one that spent longest ago is forgotten for a new one. */
  readonly maxAddresses: number;
}

/** Half a second of the event loop at once, a fifth of it after that, and a debt that is paid within five seconds. */
export const DEFAULT_STRANGER_BUDGET: StrangerBudgetLimits = {
  burst: 5_000,
  perSecond: 2_000,
  mostOwed: 10_000,
  maxAddresses: 10_000,
};

/** What an address has spent and not got back yet, as of a time. */
interface Account {
  spent: number;
  atMs: number;
}

/**
 * Counts what is spent on the strangers of each address for nothing: calls that are refused, floods, handshakes that
 * fail. An address that has spent more than its budget has to wait, and is not turned away: behind it may be others.
 * Known connections and calls that are answered cost nothing.
 */
export class StrangerBudget {
  readonly #limits: StrangerBudgetLimits;
  readonly #isSpared: (host: string) => boolean;
  readonly #accounts = new Map<string, Account>();

  /**
   * @param isSpared reports addresses that are never counted: those of trusted proxies, behind which all clients are.
   */
  constructor(
    limits: StrangerBudgetLimits = DEFAULT_STRANGER_BUDGET,
    isSpared: (host: string) => boolean = () => false,
  ) {
    this.#limits = limits;
    this.#isSpared = isSpared;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#accounts.size;
  }

  /** What counts as one address. @param peer HOST:PORT or HOST. */
  groupOf(peer: string): string {
    return addressGroup(peer);
  }

  /** Whether nothing is charged to it. @param peer HOST:PORT or HOST. */
  isSpared(peer: string): boolean {
    return this.#isSpared(hostOf(peer));
  }

  /**
   * Note what an address has cost. @param peer HOST:PORT or HOST. @param mostOwed the largest debt for such a cost,
   * where that is less than for others.
   */
  spend(peer: string, cost: number, nowMs: number, mostOwed = this.#limits.mostOwed): void {
    const { burst, maxAddresses } = this.#limits;
    if (this.isSpared(peer)) return;
    const address = addressGroup(peer);
    // Readings of one clock may be rounded.
    const atMs = Math.max(nowMs, this.#accounts.get(address)?.atMs ?? nowMs);
    const before = this.#spent(address, nowMs);
    const spent = Math.max(before, Math.min(burst + mostOwed, before + cost));
    // A Map iterates in the order of insertion, so the first is the one that spent longest ago.
    this.#accounts.delete(address);
    for (const oldest of this.#accounts.keys()) {
      if (this.#accounts.size < maxAddresses) break;
      this.#accounts.delete(oldest);
    }
    this.#accounts.set(address, { spent, atMs });
  }

  /** Milliseconds until an address owes nothing; 0 when it may go on now. @param peer HOST:PORT or HOST. */
  msUntilPaid(peer: string, nowMs: number): number {
    if (this.#accounts.size === 0) return 0;
    const { burst, perSecond } = this.#limits;
    const owed = this.#spent(addressGroup(peer), nowMs) - burst;
    return owed <= 0 ? 0 : Math.ceil((owed * 1_000) / perSecond);
  }

  #spent(address: string, nowMs: number): number {
    const account = this.#accounts.get(address);
    if (account === undefined) return 0;
    const paid = (Math.max(0, nowMs - account.atMs) * this.#limits.perSecond) / 1_000;
    return Math.max(0, account.spent - paid);
  }
}
