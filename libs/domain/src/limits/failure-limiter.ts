import { BucketTable } from "./bucket-table.ts";
import { addressGroup } from "./client-address.ts";
import type { BucketLimits } from "./token-bucket.ts";

/** How many failed attempts an address can have, and how many addresses and credentials are remembered. */
export interface FailureLimiterOptions {
  readonly limits: BucketLimits;
  /** Maximum number of addresses. A new address replaces the one whose last failure is the oldest. */
  readonly maxAddresses: number;
  /**
   * Maximum number of credentials known to be valid. A new credential replaces the one that was used least recently.
   */
  readonly maxKnown: number;
}

/** Limits for people and programs: a burst of 20 failures, then one per second. */
export const TOKEN_FAILURE_LIMITS: FailureLimiterOptions = {
  limits: { perSecond: 1, burst: 20 },
  maxAddresses: 10_000,
  maxKnown: 10_000,
};

/**
 * Limits for nodes. Hundreds of nodes can be behind one address, and some may have outdated credentials without
 * locking out the others.
 */
export const NODE_FAILURE_LIMITS: FailureLimiterOptions = {
  limits: { perSecond: 20, burst: 200 },
  maxAddresses: 10_000,
  maxKnown: 100_000,
};

/**
 * Limits failed attempts by source address. Only failures count, so that many honest clients can share an address.
 * After too many failures, only credentials that were valid before are checked from that address, so that a
 * neighbour never locks out a known caller. If a credential that was valid before fails, a separate limit applies,
 * so that it cannot be tried forever.
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
   * Milliseconds until an attempt can be checked; 0 if it can be checked now.
   *
   * @param peer HOST:PORT.
   * @param credential identifies the presented credential, without being the secret itself.
   */
  msUntilAllowed(peer: string, credential: string, nowMs: number): number {
    const waitMs = this.#addresses.msUntilOne(addressGroup(peer), nowMs);
    if (waitMs === 0 || !this.#known.has(credential)) return waitMs;
    return this.#credentials.msUntilOne(credential, nowMs);
  }

  /** Count a failed attempt. */
  failed(peer: string, credential: string, nowMs: number): void {
    this.#addresses.take(addressGroup(peer), nowMs);
    if (this.#known.has(credential)) this.#credentials.take(credential, nowMs);
  }

  /** Remember a valid credential. */
  passed(credential: string): void {
    this.#known.delete(credential);
    for (const oldest of this.#known) {
      if (this.#known.size < this.#maxKnown) break;
      this.#known.delete(oldest);
    }
    this.#known.add(credential);
  }
}
