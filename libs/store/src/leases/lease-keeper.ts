import { LeaseObserver } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import { openOwnConnections, type ReservedStore } from "../database/store.ts";
import { endLostProcess, endOwnProcess } from "../sessions/process-end.ts";
import { type Lease, type LeaseClaim, type LeaseReport, listLeases, renewLease, takeLease } from "./leases.ts";

/** The leases of the record, as a keeper of one of them needs them. A call that rejects says nothing about the record. */
export interface LeaseRecord {
  /** Raise the own counter. Null when the lease is lost. */
  renew(report: LeaseReport | undefined): Promise<number | null>;
  /** Take the own lease, or again. Null while another process holds it. */
  take(): Promise<number | null>;
  list(): Promise<readonly Lease[]>;
  /** End the lease of another process and all that it was, unless its counter has moved. Whether it ended. */
  endLost(lease: Lease): Promise<boolean>;
  /** Give back everything that this process holds. */
  endOwn(): Promise<void>;
  close(): Promise<void>;
}

/** What a lease keeper needs, and whom it tells. Callbacks must neither throw nor block. */
export interface LeaseKeeperOptions extends LeaseKeeping {
  readonly store: ReservedStore;
}

/** How a lease is kept, whatever the record is. */
export interface LeaseKeeping {
  readonly clock: Clock;
  readonly log: Logger;
  /** The process, without the name: its own lease is named as its instance. */
  readonly claim: Omit<LeaseClaim, "name">;
  /** From one renewal to the next; 2000. */
  readonly renewEveryMs?: number;
  /**
   * Without a renewal for so long the holder doubts itself, and others take it for gone; 10000. It must exceed
   * `renewEveryMs` several times, or one slow answer looks like a failure.
   */
  readonly expiryMs?: number;
  /** Asked at each renewal for what is told with it. */
  readonly report?: () => LeaseReport;
  /**
   * The lease is held: at first, and again after doubt. After doubt others may have ended the process's node and
   * addresses: they must be shown again.
   */
  readonly onHeld?: (held: { readonly first: boolean }) => void;
  /** The lease may have run out since that monotonic time: stop judging until it is held again. */
  readonly onDoubt?: (doubt: { readonly sinceMs: number }) => void;
  /** This process ended another's lease. */
  readonly onExpired?: (lease: Lease) => void;
}

/** A process's own lease: renewed for as long as the task runs, given back when it ends. */
export interface LeaseKeeper extends Task {
  /** Whether the lease is known to be held. */
  readonly held: boolean;
}

const DEFAULT_RENEW_EVERY_MS = 2_000;
const DEFAULT_EXPIRY_MS = 10_000;
/** Well below the expiry, so that one answer that never comes leaves time for another try. */
const ANSWER_TIMEOUT_MS = 4_000;
const MAX_READ_MS = 1_000;

/** Create the background task that renews one's own lease and ends those of processes that are gone. */
export function createLeaseKeeper({ store, ...keeping }: LeaseKeeperOptions): LeaseKeeper {
  return createLeaseKeeperOf(() => openLeaseRecord(store, keeping), keeping);
}

/** The same with any record. `open` is called at each start of the task. */
export function createLeaseKeeperOf(open: () => LeaseRecord, keeping: LeaseKeeping): LeaseKeeper {
  return new Keeper(open, keeping);
}

function openLeaseRecord(store: ReservedStore, { claim, log }: LeaseKeeping): LeaseRecord {
  const { instance } = claim;
  // A connection of its own: when all others wait for something, the process must not be taken for gone.
  const applicationName = `${store.applicationName} lease`;
  const own = openOwnConnections({ url: store.url, applicationName, log, statementTimeoutMs: ANSWER_TIMEOUT_MS }, 1);
  return {
    renew: (report) => renewLease(own.db, instance, instance, report),
    take: () => takeLease(own.db, { ...claim, name: instance }),
    list: () => listLeases(own.db),
    endLost: (lease) => endLostProcess(store, lease, `replica:${instance}`),
    endOwn: () => endOwnProcess(store, instance),
    close: () => own.close(),
  };
}

class Keeper implements LeaseKeeper {
  readonly name = "lease-keeper";
  readonly #open: () => LeaseRecord;
  readonly #options: LeaseKeeping;
  readonly #renewEveryMs: number;
  readonly #expiryMs: number;
  readonly #observer: LeaseObserver;
  /**
   * When the last renewal that succeeded was begun: until `expiryMs` later no other process can have ended the lease.
   */
  #heldSinceMs: number | null = null;
  #held = false;
  #failures = 0;

  constructor(open: () => LeaseRecord, options: LeaseKeeping) {
    this.#open = open;
    this.#options = options;
    this.#renewEveryMs = options.renewEveryMs ?? DEFAULT_RENEW_EVERY_MS;
    this.#expiryMs = options.expiryMs ?? DEFAULT_EXPIRY_MS;
    const maxReadGapMs = Math.min(this.#expiryMs - 1, this.#renewEveryMs * 2);
    this.#observer = new LeaseObserver({ expiryMs: this.#expiryMs, maxReadGapMs });
  }

  get held(): boolean {
    return this.#held;
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const record = this.#open();
    try {
      await Promise.all([this.#renewUntil(signal, record, succeeded), this.#doubtUntil(signal)]);
    } finally {
      await record.close();
    }
    this.#held = false;
    await record.endOwn().catch((err) =>
      // Its lease runs out instead.
      this.#options.log.warn({ err }, "lease was not given back"),
    );
  }

  async #renewUntil(signal: AbortSignal, record: LeaseRecord, succeeded: () => void): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      const startMs = clock.nowMs();
      try {
        await this.#turn(record, startMs);
        if (this.#failures > 0) log.info({ failures: this.#failures }, "lease renewed again");
        this.#failures = 0;
        succeeded();
      } catch (err) {
        this.#failures += 1;
        if (this.#failures === 1) log.warn({ err }, "lease cannot be renewed");
      }
      // Only the end interrupts it, and the loop sees that itself.
      await clock.sleep(startMs + this.#renewEveryMs - clock.nowMs(), signal).catch(() => {});
    }
  }

  /** Doubt has to come in time even while a renewal waits for its answer. */
  async #doubtUntil(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      this.#checkDoubt();
      const dueMs = (this.#heldSinceMs ?? clock.nowMs()) + this.#expiryMs - clock.nowMs();
      const restMs = this.#held ? Math.max(1, dueMs) : this.#renewEveryMs;
      await clock.sleep(restMs, signal).catch(() => {});
    }
  }

  async #turn(record: LeaseRecord, startMs: number): Promise<void> {
    const { clock, claim, report } = this.#options;
    // A process that was stopped may come here before its other timer: the gap must not go unnoticed.
    this.#checkDoubt();
    const renewed = await record.renew(report?.());
    if (renewed === null) {
      // Never taken, or ended by another process, which may have taken its place.
      this.#doubt();
      const taken = await record.take();
      if (taken === null) throw new Error(`the lease ${claim.instance} belongs to another process`);
    }
    this.#hold(startMs);
    const readMs = clock.nowMs();
    const leases = await record.list();
    // What was read so slowly may be old: no read at all, then.
    if (clock.nowMs() - readMs <= MAX_READ_MS) await this.#observe(record, leases, readMs);
  }

  #hold(startMs: number): void {
    // An answer that took so long proves nothing about now.
    if (this.#options.clock.nowMs() - startMs >= this.#expiryMs) return;
    const first = this.#heldSinceMs === null;
    this.#heldSinceMs = startMs;
    if (this.#held) return;
    this.#held = true;
    this.#options.onHeld?.({ first });
  }

  #checkDoubt(): void {
    if (this.#heldSinceMs === null) return;
    if (this.#options.clock.nowMs() - this.#heldSinceMs >= this.#expiryMs) this.#doubt();
  }

  #doubt(): void {
    if (!this.#held || this.#heldSinceMs === null) return;
    this.#held = false;
    this.#options.log.warn({ failures: this.#failures }, "lease in doubt");
    this.#options.onDoubt?.({ sinceMs: this.#heldSinceMs });
  }

  async #observe(record: LeaseRecord, leases: readonly Lease[], nowMs: number): Promise<void> {
    const { claim, log, onExpired } = this.#options;
    const others = leases.filter(({ instance }) => instance !== claim.instance);
    const readings = others.map(({ name, instance, counter }) => ({
      // The next holder of a name is another lease.
      id: JSON.stringify([name, instance]),
      counter,
    }));
    const expired = new Set(this.#observer.observe(readings, nowMs, this.#held));
    for (const [index, lease] of others.entries()) {
      if (!expired.has(readings[index]?.id ?? "")) continue;
      if (!(await record.endLost(lease))) continue;
      log.warn({ name: lease.name, service: lease.service }, "lease of another process ended");
      onExpired?.(lease);
    }
  }
}
