import type { LeaseTiming } from "./lease-holding.ts";
import { LeaseObserver, type LeaseReading } from "./lease-observer.ts";

/** A lease as read from the store: its name, and the process that holds it. */
export interface ReadLease {
  readonly name: string;
  readonly instance: string;
  readonly counter: LeaseReading["counter"];
}

/** The times of one read of the leases, by the reader's monotonic clock. */
export interface LeaseRead {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

/** Longest duration of a read in milliseconds. A read that takes longer is ignored, because its data may be old. */
const MAX_READ_MS = 1_000;
/** The longest time between two reads that is not a gap, in renewal intervals, keyed by the role of the reader. */
const INTERVALS_IN_GAP = { keeper: 2, contender: 3 };

/** Finds the leases of other processes that must be ended. */
export class OtherLeases {
  readonly #own: string;
  readonly #observer: LeaseObserver;

  /**
   * @param own the reader's instance.
   * @param role a keeper reads whenever it renews its process's lease; a contender reads after each attempt to acquire
   *   a lease that another process holds.
   */
  constructor(own: string, role: keyof typeof INTERVALS_IN_GAP, { renewEveryMs, expiryMs }: LeaseTiming) {
    this.#own = own;
    const maxReadGapMs = Math.min(expiryMs - 1, renewEveryMs * INTERVALS_IN_GAP[role]);
    this.#observer = new LeaseObserver({ expiryMs, maxReadGapMs });
  }

  /**
   * Find the expired leases among those read. The caller may end them as long as their counters have not
   * changed.
   *
   * @param isSure whether the reader knows that it is not cut off itself, see LeaseObserver.
   */
  expiredAmong<L extends ReadLease>(leases: readonly L[], read: LeaseRead, isSure: boolean): readonly L[] {
    if (read.answeredAtMs - read.askedAtMs > MAX_READ_MS) return [];
    const others = new Map<string, L>();
    for (const lease of leases) if (lease.instance !== this.#own) others.set(idOf(lease), lease);
    const readings = [...others].map(([id, { counter }]) => ({ id, counter }));
    const expired = new Set(this.#observer.observe(readings, read.askedAtMs, isSure));
    return [...others].flatMap(([id, lease]) => (expired.has(id) ? [lease] : []));
  }
}

/** Identify a lease by name and holder, so that the same name with a new holder counts as another lease. */
function idOf({ name, instance }: ReadLease): string {
  return JSON.stringify([name, instance]);
}
