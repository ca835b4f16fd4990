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
import { type Lease, type LeaseClaim, type LeaseReport, listLeases, renewLease, takeLease } from "./leases.ts";
import { endLostProcess, endOwnProcess } from "./process-end.ts";

/** The lease operations that a keeper needs. When a call rejects, the state of the lease is unknown. */
export interface LeaseStore {
  /** Increase the counter of this process's lease. Returns the new counter, or null when the lease is lost. */
  renew(report: LeaseReport | undefined): Promise<number | null>;
  /**
   * Take this process's lease, or keep it if the process already holds it. Returns the lease's counter, or null while
   * another process holds the lease.
   */
  take(): Promise<number | null>;
  list(): Promise<readonly Lease[]>;
  /**
   * End another process's lease and release everything that belongs to the process, unless the lease's counter has
   * changed. Returns whether the lease ended.
   */
  endLost(lease: Lease): Promise<boolean>;
  /** Release everything that this process holds. */
  endOwn(): Promise<void>;
  close(): Promise<void>;
}

/** Options of a lease keeper. Callbacks must neither throw nor block. */
export interface LeaseKeeperOptions extends LeaseKeeping {
  readonly store: ReservedStore;
}

/** Options of a lease keeper that do not depend on where leases are stored. */
export interface LeaseKeeping extends Partial<LeaseTiming> {
  readonly clock: Clock;
  readonly log: Logger;
  /** The process that takes the lease. The lease's name is left out, because it is the instance. */
  readonly claim: Omit<LeaseClaim, "name">;
  /** Called at each renewal. Returns the values to write with the renewal. */
  readonly report?: () => LeaseReport;
  /**
   * Called when the process starts to hold the lease, and again after a doubt. During the doubt, other processes may
   * have removed the process's node and addresses: write them again.
   */
  readonly onHeld?: (held: { readonly first: boolean }) => void;
  /** Called when the lease may have expired. Declare no node unhealthy until the lease is held again. */
  readonly onDoubt?: (doubt: LeaseDoubt) => void;
  /** Called after this process has ended the lease of another process. */
  readonly onExpired?: (lease: Lease) => void;
}

/** A process's own lease: renewed while the task runs, released when it ends. */
export interface LeaseKeeper extends Task {
  /** Whether the lease is known to be held. */
  readonly held: boolean;
  /** The monotonic time of the last renewal in milliseconds; null before the first. */
  readonly renewedAtMs: number | null;
}

/**
 * How long a renewal waits for a response. This is well below the expiry, so that there is time for another attempt.
 */
const ANSWER_TIMEOUT_MS = 4_000;

/** Create the background task that renews the process's own lease and ends the leases of dead processes. */
export function createLeaseKeeper({ store, ...keeping }: LeaseKeeperOptions): LeaseKeeper {
  return createLeaseKeeperOf(() => openLeaseRecord(store, keeping), keeping);
}

/**
 * Like createLeaseKeeper, for leases that are stored elsewhere than in Postgres. `open` is called at each start of the
 * task.
 */
export function createLeaseKeeperOf(open: () => LeaseStore, keeping: LeaseKeeping): LeaseKeeper {
  return new Keeper(open, keeping);
}

function openLeaseRecord(store: ReservedStore, { claim, log }: LeaseKeeping): LeaseStore {
  const { instance } = claim;
  // Use a separate connection, so that the process does not lose its lease while all other connections are blocked.
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

/**
 * Renews the process's own lease and ends the expired leases of others. LeaseHolding decides whether the own lease is
 * held, and OtherLeases decides which other leases have expired.
 */
class Keeper implements LeaseKeeper {
  readonly name = "lease-keeper";
  readonly #open: () => LeaseStore;
  readonly #options: LeaseKeeping;
  readonly #renewEveryMs: number;
  readonly #holding: LeaseHolding;
  readonly #others: OtherLeases;
  #failures = 0;
  #renewedAtMs: number | null = null;

  constructor(open: () => LeaseStore, options: LeaseKeeping) {
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
      // Only log the error: another process will end the lease when it expires.
      this.#options.log.warn({ err }, "could not release the lease"),
    );
  }

  async #renewUntil(signal: AbortSignal, record: LeaseStore, succeeded: () => void): Promise<void> {
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
      // Ignore the rejection: only an abort interrupts the sleep, and the loop checks for it.
      await clock.sleep(startMs + this.#renewEveryMs - clock.nowMs(), signal).catch(() => {});
    }
  }

  /** Report in time that the lease is in doubt, even while a renewal waits for its response. */
  async #doubtUntil(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      this.#tell(this.#holding.check(clock.nowMs()));
      const { doubtAtMs } = this.#holding;
      const restMs = doubtAtMs === null ? this.#renewEveryMs : Math.max(1, doubtAtMs - clock.nowMs());
      await clock.sleep(restMs, signal).catch(() => {});
    }
  }

  async #turn(record: LeaseStore, startMs: number): Promise<void> {
    const { clock, claim, report, onHeld } = this.#options;
    // Report the doubt here too, because after the process was suspended, this can run before the doubt timer.
    this.#tell(this.#holding.check(startMs));
    const renewed = await record.renew(report?.());
    if (renewed === null) {
      // Report a lease that was never taken, or that another process ended. That process may have taken over what
      // belonged to this one.
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

  async #endOthers(record: LeaseStore): Promise<void> {
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
