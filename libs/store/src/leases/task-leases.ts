import { LEASE_TIMING, LeaseHolding, type LeaseTiming, OtherLeases } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { expireLease, type Lease, type LeaseClaim, readLease, releaseLease, renewLease, takeLease } from "./leases.ts";

/** The lease of one task, as a process that wants it needs it. A call that rejects says nothing about the record. */
export interface TaskLeaseRecord {
  /** Take the lease, or again. Null while another process holds it. */
  take(): Promise<number | null>;
  /** Null while it is free. */
  read(): Promise<Lease | null>;
  /** Raise the own counter. Null when the lease is lost. */
  renew(): Promise<number | null>;
  /** End another's lease, unless its counter has moved. Whether it ended. */
  expire(lease: Lease): Promise<boolean>;
  /** Release it, if this process holds it. */
  release(): Promise<void>;
}

/** What a task that one process alone runs is made of. */
export interface LeasedTaskOptions extends LeasedWork {
  readonly store: ReservedStore;
}

/** The same, whatever the record is. */
export interface LeasedWork extends Partial<LeaseTiming> {
  readonly clock: Clock;
  readonly log: Logger;
  /** The lease, whose name is the task's too. Its instance is that of the process. */
  readonly claim: LeaseClaim;
  /**
   * Wait until this process is able to do the work: it does not contend for the lease before. Absent means that it
   * always is.
   */
  readonly able?: (signal: AbortSignal) => Promise<void>;
  /**
   * The work, done while the lease is held. The signal aborts as well when the lease is lost or in doubt; what it still
   * writes then must be fenced. When it throws, the lease is given back, and another process may have better luck.
   */
  readonly work: (signal: AbortSignal, succeeded: () => void) => Promise<void>;
}

/** A task of which one runs in the whole cluster. */
export interface LeasedTask extends Task {
  /** Whether it runs here. */
  readonly active: boolean;
}

/**
 * Make a task that runs where its lease is held. Another process takes over at once when the lease is given back, and
 * otherwise when its counter has not moved for `expiryMs` by that process's own monotonic clock.
 */
export function leasedTask({ store, ...work }: LeasedTaskOptions): LeasedTask {
  const { claim } = work;
  const { name, instance } = claim;
  const record: TaskLeaseRecord = {
    take: () => takeLease(store.db, claim),
    read: () => readLease(store.db, name),
    renew: () => renewLease(store.db, name, instance),
    expire: (lease) => expireLease(store.db, lease),
    release: () => releaseLease(store.db, name, instance),
  };
  return leasedTaskOf(record, work);
}

/** The same with any record. */
export function leasedTaskOf(record: TaskLeaseRecord, work: LeasedWork): LeasedTask {
  return new Leased(record, work);
}

/** The loop around a task's lease: LeaseHolding says what may be relied on, OtherLeases when another's has run out. */
class Leased implements LeasedTask {
  readonly name: string;
  readonly #record: TaskLeaseRecord;
  readonly #options: LeasedWork;
  readonly #timing: LeaseTiming;
  #active = false;
  #failures = 0;

  constructor(record: TaskLeaseRecord, options: LeasedWork) {
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

  /** The lease, once it is held for certain; null when the signal aborted before it was. */
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
        // To stand by is to work: the task is well.
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
    // The write before this read went through, so it is not this process that is cut off.
    if (others.expiredAmong([lease], read, true).length === 0) return false;
    if (!(await record.expire(lease))) return false;
    log.warn({ lease: lease.name, holder: lease.instance }, "lease of a task taken over");
    return (await record.take()) !== null;
  }

  async #hold(holding: LeaseHolding, signal: AbortSignal, succeeded: () => void): Promise<"done" | "lost"> {
    const { claim, log, work } = this.#options;
    const lost = new AbortController();
    const ending = new AbortController();
    const renewing = this.#renewUntil(ending.signal, holding, lost);
    log.info({ lease: claim.name }, "lease of a task held");
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
        // It runs out instead.
        log.warn({ err, lease: claim.name }, "lease of a task was not given back"),
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
    const doubt = () => lose("lease of a task in doubt");
    const doubting = this.#doubtUntil(over, holding, doubt);
    while (!over.aborted) {
      await clock.sleep(this.#timing.renewEveryMs, over).catch(() => {});
      if (over.aborted) break;
      const startMs = clock.nowMs();
      // A process that was stopped may come here before its other timer. What was lost stays lost.
      if (holding.check(startMs) !== null) {
        doubt();
        break;
      }
      try {
        if ((await this.#record.renew()) === null) {
          holding.lost();
          lose("lease of a task lost");
        } else if (holding.isHeld) holding.proved(startMs, clock.nowMs());
        this.#failures = 0;
      } catch (err) {
        this.#noteFailure(err);
      }
    }
    await doubting;
  }

  /** Doubt has to come in time even while a renewal waits for its answer. */
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
    if (this.#failures === 1) log.warn({ err, lease: claim.name }, "the lease of a task cannot be read");
  }
}
