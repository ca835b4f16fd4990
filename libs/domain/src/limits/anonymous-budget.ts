import { addressGroup, hostOf } from "./client-address.ts";

/**
 * How much load the anonymous clients of one address may cause, and how many addresses are remembered. Costs are in
 * tenths of a millisecond of event loop time.
 */
export interface AnonymousBudgetLimits {
  /** Maximum cost that an address can spend as a burst, after it has not spent anything for a long time. */
  readonly burst: number;
  /** How much an address regains per second. */
  readonly perSecond: number;
  /** The largest debt of an address. It limits how long the address has to wait. */
  readonly mostOwed: number;
  /** Maximum number of addresses. A new address replaces the one whose last cost is the oldest. */
  readonly maxAddresses: number;
}

/**
 * The default limits: a burst of half a second of event loop time, then 0.2 s per second. The largest debt is paid
 * after five seconds.
 */
export const DEFAULT_ANONYMOUS_BUDGET: AnonymousBudgetLimits = {
  burst: 5_000,
  perSecond: 2_000,
  mostOwed: 10_000,
  maxAddresses: 10_000,
};

/** The cost that an address had spent and not regained at time `atMs`. */
interface Account {
  spent: number;
  atMs: number;
}

/**
 * Charges each address for the useless work that its anonymous clients cause: refused calls, floods, failed
 * handshakes. An address that exceeds its budget has to wait. It is not refused, because honest clients may share
 * it. Known connections and answered calls cost nothing.
 */
export class AnonymousBudget {
  readonly #limits: AnonymousBudgetLimits;
  readonly #isSpared: (host: string) => boolean;
  readonly #accounts = new Map<string, Account>();

  /**
   * @param isSpared whether an address is never charged. True for trusted proxies, because all clients are behind them.
   */
  constructor(
    limits: AnonymousBudgetLimits = DEFAULT_ANONYMOUS_BUDGET,
    isSpared: (host: string) => boolean = () => false,
  ) {
    this.#limits = limits;
    this.#isSpared = isSpared;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#accounts.size;
  }

  /** The address or network that a peer's costs are charged to. @param peer HOST:PORT or HOST. */
  groupOf(peer: string): string {
    return addressGroup(peer);
  }

  /** Whether an address is never charged. @param peer HOST:PORT or HOST. */
  isSpared(peer: string): boolean {
    return this.#isSpared(hostOf(peer));
  }

  /**
   * Charge a cost to an address. @param peer HOST:PORT or HOST. @param mostOwed the largest debt that this cost may
   * cause, if lower than the general limit.
   */
  spend(peer: string, cost: number, nowMs: number, mostOwed = this.#limits.mostOwed): void {
    const { burst, maxAddresses } = this.#limits;
    if (this.isSpared(peer)) return;
    const address = addressGroup(peer);
    // Never go back in time, because two readings of the same clock may be rounded differently.
    const atMs = Math.max(nowMs, this.#accounts.get(address)?.atMs ?? nowMs);
    const before = this.#spent(address, nowMs);
    const spent = Math.max(before, Math.min(burst + mostOwed, before + cost));
    // Delete the account to insert it last. A Map iterates in insertion order, so the first address is then the one
    // whose last cost is the oldest.
    this.#accounts.delete(address);
    for (const oldest of this.#accounts.keys()) {
      if (this.#accounts.size < maxAddresses) break;
      this.#accounts.delete(oldest);
    }
    this.#accounts.set(address, { spent, atMs });
  }

  /** Milliseconds until an address has paid its debt; 0 if it has none. @param peer HOST:PORT or HOST. */
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
