import { BucketTable } from "./bucket-table.ts";
import { addressGroup } from "./client-address.ts";
import type { BucketLimits } from "./token-bucket.ts";

/** How many failures an address may have, and how much is remembered. */
export interface FailureLimiterOptions {
  readonly limits: BucketLimits;
  /** Addresses at most; the one that failed longest ago is forgotten for a new one. */
  readonly maxAddresses: number;
  /** Credentials at most that were good; the one that was seen longest ago is forgotten for a new one. */
  readonly maxKnown: number;
}

/** For people and programs: 20 failures at once, and one a second after. */
export const TOKEN_FAILURE_LIMITS: FailureLimiterOptions = {
  limits: { perSecond: 1, burst: 20 },
  maxAddresses: 10_000,
  maxKnown: 10_000,
};

/**
 * For nodes, of which hundreds may be behind one address: some of them may be out of date without any harm to the
 * others.
 */
export const NODE_FAILURE_LIMITS: FailureLimiterOptions = {
  limits: { perSecond: 20, burst: 200 },
  maxAddresses: 10_000,
  maxKnown: 100_000,
};

/**
 * Limits failed attempts by the address that they come from. Only failures count, so many honest clients may share an
 * address. When an address has failed too often, nothing from it is looked at but credentials that were good before:
 * a known caller is never shut out by a neighbour. A known credential that fails now has a limit of its own, so that
 * none can be tried for ever.
 */
export class FailureLimiter {
  readonly #addresses: BucketTable;
  readonly #credentials: BucketTable;
  readonly #known = new Set<string>();
  readonly #maxKnown: number;

  constructor({ limits, maxAddresses, maxKnown }: FailureLimiterOptions) {
    this.#addresses = new BucketTable(limits, maxAddresses);
    this.#credentials = new BucketTable(limits, maxAddresses);
    this.#maxKnown = maxKnown;
  }

  /**
   * Milliseconds until an attempt is looked at; 0 when it is now.
   *
   * @param peer HOST:PORT.
   * @param credential names what is presented, never the secret itself.
   */
  msUntilAllowed(peer: string, credential: string, nowMs: number): number {
    const waitMs = this.#addresses.msUntilOne(addressGroup(peer), nowMs);
    if (waitMs === 0 || !this.#known.has(credential)) return waitMs;
    return this.#credentials.msUntilOne(credential, nowMs);
  }

  /** Count an attempt that failed. */
  failed(peer: string, credential: string, nowMs: number): void {
    this.#addresses.take(addressGroup(peer), nowMs);
    if (this.#known.has(credential)) this.#credentials.take(credential, nowMs);
  }

  /** Remember a credential that was good. */
  passed(credential: string): void {
    this.#known.delete(credential);
    for (const oldest of this.#known) {
      if (this.#known.size < this.#maxKnown) break;
      this.#known.delete(oldest);
    }
    this.#known.add(credential);
  }
}
