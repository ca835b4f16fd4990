import {
  LEASE_TIMING,
  type LeaseDoubt,
  LeaseHolding,
  type LeaseTiming,
  OtherLeases,
  replicaActor,
} from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import { openOwnConnections, type ReservedStore } from "../database/store.ts";
import { endLostProcess, endOwnProcess } from "../sessions/process-end.ts";
import { type Lease, type LeaseClaim, type LeaseReport, listLeases, renewLease, takeLease } from "./leases.ts";

/**
 * The leases of the record, as a keeper of one of them needs them. A call that rejects says nothing about the record.
 */
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
export interface LeaseKeeping extends Partial<LeaseTiming> {
  readonly clock: Clock;
  readonly log: Logger;
  /** The process, without the name: its own lease is named as its instance. */
  readonly claim: Omit<LeaseClaim, "name">;
  /** Called at each renewal for the values that are written with it. */
  readonly report?: () => LeaseReport;
  /**
   * The lease is held: at first, and again after doubt. After doubt others may have ended the process's node and
   * addresses, so they are to be shown again.
   */
  readonly onHeld?: (held: { readonly first: boolean }) => void;
  /** The lease may have run out since that monotonic time: stop judging until it is held again. */
  readonly onDoubt?: (doubt: LeaseDoubt) => void;
  /** This process ended another's lease. */
  readonly onExpired?: (lease: Lease) => void;
}

/** A process's own lease: renewed for as long as the task runs, given back when it ends. */
export interface LeaseKeeper extends Task {
  /** Whether the lease is known to be held. */
  readonly held: boolean;
  /** When it was last renewed, in monotonic milliseconds; null before the first time. */
  readonly renewedAtMs: number | null;
}

/** Well below the expiry, so that one answer that never comes leaves time for another try. */
const ANSWER_TIMEOUT_MS = 4_000;

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
  const own = openOwnConnections({ ...store.address, applicationName, log, statementTimeoutMs: ANSWER_TIMEOUT_MS }, 1);
  return {
    renew: (report) => renewLease(own.db, instance, instance, report),
    take: () => takeLease(own.db, { ...claim, name: instance }),
    list: () => listLeases(own.db),
    endLost: (lease) => endLostProcess(store, lease, replicaActor(instance)),
    endOwn: () => endOwnProcess(store, instance),
    close: () => own.close(),
  };
}

/** The loop around a lease: LeaseHolding says what may be relied on, OtherLeases which of the others have run out. */
class Keeper implements LeaseKeeper {
  readonly name = "lease-keeper";
  readonly #open: () => LeaseRecord;
  readonly #options: LeaseKeeping;
  readonly #renewEveryMs: number;
  readonly #holding: LeaseHolding;
  readonly #others: OtherLeases;
  #failures = 0;
  #renewedAtMs: number | null = null;

  constructor(open: () => LeaseRecord, options: LeaseKeeping) {
    this.#open = open;
    this.#options = options;
    const { renewEveryMs = LEASE_TIMING.renewEveryMs, expiryMs = LEASE_TIMING.expiryMs, claim } = options;
    this.#renewEveryMs = renewEveryMs;
    this.#holding = new LeaseHolding({ expiryMs });
    this.#others = new OtherLeases(claim.instance, "keeper", { renewEveryMs, expiryMs });
  }

  get held(): boolean {
    return this.#holding.isHeld;
  }

  get renewedAtMs(): number | null {
    return this.#renewedAtMs;
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const record = this.#open();
    try {
      await Promise.all([this.#renewUntil(signal, record, succeeded), this.#doubtUntil(signal)]);
    } finally {
      await record.close();
    }
    this.#holding.lost();
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
      this.#tell(this.#holding.check(clock.nowMs()));
      const { doubtAtMs } = this.#holding;
      const restMs = doubtAtMs === null ? this.#renewEveryMs : Math.max(1, doubtAtMs - clock.nowMs());
      await clock.sleep(restMs, signal).catch(() => {});
    }
  }

  async #turn(record: LeaseRecord, startMs: number): Promise<void> {
    const { clock, claim, report, onHeld } = this.#options;
    // A process that was stopped may come here before its other timer: the gap must not go unnoticed.
    this.#tell(this.#holding.check(startMs));
    const renewed = await record.renew(report?.());
    if (renewed === null) {
      // Never taken, or ended by another: what the process was may be another's by now.
      this.#tell(this.#holding.lost());
      const taken = await record.take();
      if (taken === null) throw new Error(`the lease ${claim.instance} belongs to another process`);
    }
    const begun = this.#holding.proved(startMs, clock.nowMs());
    this.#renewedAtMs = startMs;
    if (begun !== null) onHeld?.({ first: begun === "held" });
    await this.#endOthers(record);
  }

  #tell(doubt: LeaseDoubt | null): void {
    if (doubt === null) return;
    this.#options.log.warn({ failures: this.#failures }, "lease in doubt");
    this.#options.onDoubt?.(doubt);
  }

  async #endOthers(record: LeaseRecord): Promise<void> {
    const { clock, log, onExpired } = this.#options;
    const askedAtMs = clock.nowMs();
    const leases = await record.list();
    const read = { askedAtMs, answeredAtMs: clock.nowMs() };
    for (const lease of this.#others.expiredAmong(leases, read, this.held)) {
      if (!(await record.endLost(lease))) continue;
      log.warn({ name: lease.name, service: lease.service }, "lease of another process ended");
      onExpired?.(lease);
    }
  }
}
