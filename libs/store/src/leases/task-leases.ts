import { LEASE_TIMING, LeaseHolding, type LeaseTiming, OtherLeases } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { expireLease, type Lease, type LeaseClaim, readLease, releaseLease, renewLease, takeLease } from "./leases.ts";

/** The lease operations that a task needs. When a call rejects, the state of the lease is unknown. */
export interface TaskLeaseStore {
  /**
   * Take the lease, or keep it if this process already holds it. Returns the lease's counter, or null while another
   * process holds the lease.
   */
  take(): Promise<number | null>;
  /** Read the lease; null while it is free. */
  read(): Promise<Lease | null>;
  /** Increase the counter of the held lease. Returns the new counter, or null when the lease is lost. */
  renew(): Promise<number | null>;
  /** End another process's lease unless its counter has changed. Returns whether the lease ended. */
  expire(lease: Lease): Promise<boolean>;
  /** Release the lease if this process holds it. */
  release(): Promise<void>;
}

/** Options of a task that only one process runs at a time. */
export interface LeasedTaskOptions extends LeasedWork {
  readonly store: ReservedStore;
}

/** Options of a leased task that do not depend on where the lease is stored. */
export interface LeasedWork extends Partial<LeaseTiming> {
  readonly clock: Clock;
  readonly log: Logger;
  /** The lease to take. Its name is also the task's name. */
  readonly claim: LeaseClaim;
  /**
   * Wait until this process can do the work. The process contends for the lease only after that. Absent if the process
   * can always do the work.
   */
  readonly able?: (signal: AbortSignal) => Promise<void>;
  /**
   * Do the work while the lease is held. The signal also aborts when the lease is lost or in doubt. Writes must be
   * fenced, because they can arrive after the abort. If the work throws, the lease is released, and another process
   * can try.
   */
  readonly work: (signal: AbortSignal, succeeded: () => void) => Promise<void>;
}

/** A task that only one process in the cluster runs at a time. */
export interface LeasedTask extends Task {
  /** Whether the task runs in this process. */
  readonly active: boolean;
}

/**
 * Create a task that runs in the process that holds its lease. When that process releases the lease, another process
 * takes over immediately. Otherwise another process takes over once the lease's counter has not changed for `expiryMs`
 * by the other process's own monotonic clock.
 */
export function leasedTask({ store, ...work }: LeasedTaskOptions): LeasedTask {
  const { claim } = work;
  const { name, instance } = claim;
  const record: TaskLeaseStore = {
    take: () => takeLease(store.db, claim),
    read: () => readLease(store.db, name),
    renew: () => renewLease(store.db, name, instance),
    expire: (lease) => expireLease(store.db, lease),
    release: () => releaseLease(store.db, name, instance),
  };
  return leasedTaskOf(record, work);
}

/** Like leasedTask, for a lease that is stored elsewhere than in Postgres. */
export function leasedTaskOf(record: TaskLeaseStore, work: LeasedWork): LeasedTask {
  return new Leased(record, work);
}

/**
 * Contends for a task's lease, and runs the task while it holds the lease. LeaseHolding decides whether the lease is
 * held, and OtherLeases decides whether another process's lease has expired.
 */
class Leased implements LeasedTask {
  readonly name: string;
  readonly #record: TaskLeaseStore;
  readonly #options: LeasedWork;
  readonly #timing: LeaseTiming;
  #active = false;
  #failures = 0;

  constructor(record: TaskLeaseStore, options: LeasedWork) {
    this.name = options.claim.name;
    this.#record = record;
    this.#options = options;
    const { renewEveryMs = LEASE_TIMING.renewEveryMs, expiryMs = LEASE_TIMING.expiryMs } = options;
    this.#timing = { renewEveryMs, expiryMs };
  }

  get active(): boolean {
    return this.#active;
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    while (!signal.aborted) {
      await this.#options.able?.(signal);
      const holding = await this.#contend(signal, succeeded);
      if (holding === null) return;
      const outcome = await this.#hold(holding, signal, succeeded);
      if (outcome === "done") return;
    }
  }

  /** Wait until this process certainly holds the lease; null when the signal aborted first. */
  async #contend(signal: AbortSignal, succeeded: () => void): Promise<LeaseHolding | null> {
    const { clock, claim } = this.#options;
    const holding = new LeaseHolding(this.#timing);
    const others = new OtherLeases(claim.instance, "contender", this.#timing);
    while (!signal.aborted) {
      const startMs = clock.nowMs();
      try {
        if (await this.#tryTake(others)) holding.proved(startMs, clock.nowMs());
        if (holding.isHeld) return holding;
        this.#failures = 0;
        // Standing by is normal, so report the task as healthy.
        succeeded();
      } catch (err) {
        this.#noteFailure(err);
      }
      await clock.sleep(this.#timing.renewEveryMs, signal).catch(() => {});
    }
    return null;
  }

  async #tryTake(others: OtherLeases): Promise<boolean> {
    const { clock, log } = this.#options;
    const record = this.#record;
    if ((await record.take()) !== null) return true;
    const askedAtMs = clock.nowMs();
    const lease = await record.read();
    if (lease === null) return false;
    const read = { askedAtMs, answeredAtMs: clock.nowMs() };
    // This process can reach the store, because the take() before this read got a response.
    if (others.expiredAmong([lease], read, true).length === 0) return false;
    if (!(await record.expire(lease))) return false;
    log.warn({ lease: lease.name, holder: lease.instance }, "task lease taken over");
    return (await record.take()) !== null;
  }

  async #hold(holding: LeaseHolding, signal: AbortSignal, succeeded: () => void): Promise<"done" | "lost"> {
    const { claim, log, work } = this.#options;
    const lost = new AbortController();
    const ending = new AbortController();
    const renewing = this.#renewUntil(ending.signal, holding, lost);
    log.info({ lease: claim.name }, "task lease acquired");
    this.#active = true;
    try {
      await work(AbortSignal.any([signal, lost.signal]), succeeded);
      return lost.signal.aborted ? "lost" : "done";
    } catch (error) {
      if (!lost.signal.aborted || signal.aborted) throw error;
      return "lost";
    } finally {
      this.#active = false;
      ending.abort();
      await renewing;
      await this.#record.release().catch((err) =>
        // Only log the error: another process will end the lease when it expires.
        log.warn({ err, lease: claim.name }, "could not release a task lease"),
      );
    }
  }

  async #renewUntil(ending: AbortSignal, holding: LeaseHolding, lost: AbortController): Promise<void> {
    const { clock, log, claim } = this.#options;
    const lose = (why: string) => {
      if (lost.signal.aborted) return;
      log.warn({ lease: claim.name }, why);
      lost.abort(new Error(why));
    };
    const over = AbortSignal.any([ending, lost.signal]);
    const doubt = () => lose("task lease in doubt");
    const doubting = this.#doubtUntil(over, holding, doubt);
    while (!over.aborted) {
      await clock.sleep(this.#timing.renewEveryMs, over).catch(() => {});
      if (over.aborted) break;
      const startMs = clock.nowMs();
      // Check for doubt here too, because after the process was suspended, this can run before the doubt timer. A
      // lease in doubt stays lost.
      if (holding.check(startMs) !== null) {
        doubt();
        break;
      }
      try {
        if ((await this.#record.renew()) === null) {
          holding.lost();
          lose("task lease lost");
        } else if (holding.isHeld) holding.proved(startMs, clock.nowMs());
        this.#failures = 0;
      } catch (err) {
        this.#noteFailure(err);
      }
    }
    await doubting;
  }

  /** Report in time that the lease is in doubt, even while a renewal waits for its response. */
  async #doubtUntil(over: AbortSignal, holding: LeaseHolding, onDoubt: () => void): Promise<void> {
    const { clock } = this.#options;
    while (!over.aborted) {
      if (holding.check(clock.nowMs()) !== null) return onDoubt();
      const { doubtAtMs } = holding;
      if (doubtAtMs === null) return;
      await clock.sleep(Math.max(1, doubtAtMs - clock.nowMs()), over).catch(() => {});
    }
  }

  #noteFailure(err: unknown): void {
    this.#failures += 1;
    const { log, claim } = this.#options;
    if (this.#failures === 1) log.warn({ err, lease: claim.name }, "cannot read a task lease");
  }
}
