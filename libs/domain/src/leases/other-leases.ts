import type { LeaseTiming } from "./lease-holding.ts";
import { LeaseObserver, type LeaseReading } from "./lease-observer.ts";

/** A lease as it was read: what it is of, and the process that holds it. */
export interface ReadLease {
  readonly name: string;
  readonly instance: string;
  readonly counter: LeaseReading["counter"];
}

/** One read of leases, by the reader's monotonic clock. */
export interface LeaseRead {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

/** What was read more slowly may be old: it counts as no read at all. */
const MAX_READ_MS = 1_000;
/** How many intervals of renewals may lie between two reads without a gap, by who reads. */
const INTERVALS_IN_GAP = { keeper: 2, contender: 3 };

/** Tells which leases of other processes are to be ended. */
export class OtherLeases {
  readonly #own: string;
  readonly #observer: LeaseObserver;

  /**
   * @param own the reader's instance.
   * @param role a keeper reads with each renewal of its own lease, a contender after each try to take another's.
   */
  constructor(own: string, role: keyof typeof INTERVALS_IN_GAP, { renewEveryMs, expiryMs }: LeaseTiming) {
    this.#own = own;
    const maxReadGapMs = Math.min(expiryMs - 1, renewEveryMs * INTERVALS_IN_GAP[role]);
    this.#observer = new LeaseObserver({ expiryMs, maxReadGapMs });
  }

  /**
   * Those among the leases that have run out. They may be ended as long as their counters are what was read.
   *
   * @param isSure whether the reader knows that it is not cut off itself. See LeaseObserver.
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

/** The next holder of a name has another lease. */
function idOf({ name, instance }: ReadLease): string {
  return JSON.stringify([name, instance]);
}
