import { LeaseObserver } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { expireLease, type LeaseClaim, readLease, releaseLease, renewLease, takeLease } from "./leases.ts";

/** What a task that one process alone runs is made of. */
export interface LeasedTaskOptions {
  readonly store: ReservedStore;
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
  /** From one renewal, or one look at another's lease, to the next; 2000. */
  readonly renewEveryMs?: number;
  /**
   * Without a renewal for so long the holder gives up, and others take the lease; 10000. It must exceed `renewEveryMs`
   * several times.
   */
  readonly expiryMs?: number;
}

/** A task of which one runs in the whole cluster. */
export interface LeasedTask extends Task {
  /** Whether it runs here. */
  readonly active: boolean;
}

const DEFAULT_RENEW_EVERY_MS = 2_000;
const DEFAULT_EXPIRY_MS = 10_000;
const MAX_READ_MS = 1_000;

/**
 * Make a task that runs where its lease is held. Another process takes over at once when the lease is given back, and
 * otherwise when its counter has not moved for `expiryMs` by that process's own monotonic clock.
 */
export function leasedTask(options: LeasedTaskOptions): LeasedTask {
  return new Leased(options);
}

class Leased implements LeasedTask {
  readonly name: string;
  readonly #options: LeasedTaskOptions;
  readonly #renewEveryMs: number;
  readonly #expiryMs: number;
  #active = false;
  #failures = 0;

  constructor(options: LeasedTaskOptions) {
    this.name = options.claim.name;
    this.#options = options;
    this.#renewEveryMs = options.renewEveryMs ?? DEFAULT_RENEW_EVERY_MS;
    this.#expiryMs = options.expiryMs ?? DEFAULT_EXPIRY_MS;
  }

  get active(): boolean {
    return this.#active;
  }

  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    while (!signal.aborted) {
      await this.#options.able?.(signal);
      const heldSinceMs = await this.#contend(signal, succeeded);
      if (heldSinceMs === null) return;
      const outcome = await this.#hold(heldSinceMs, signal, succeeded);
      if (outcome === "done") return;
    }
  }

  /** Since when the lease is held for certain; null when the signal aborted before it was. */
  async #contend(signal: AbortSignal, succeeded: () => void): Promise<number | null> {
    const { clock } = this.#options;
    const maxReadGapMs = Math.min(this.#expiryMs - 1, this.#renewEveryMs * 3);
    const observer = new LeaseObserver({ expiryMs: this.#expiryMs, maxReadGapMs });
    while (!signal.aborted) {
      const startMs = clock.nowMs();
      try {
        if (await this.#tryTake(observer)) return startMs;
        this.#failures = 0;
        // To stand by is to work: the task is well.
        succeeded();
      } catch (err) {
        this.#noteFailure(err);
      }
      await clock.sleep(this.#renewEveryMs, signal).catch(() => {});
    }
    return null;
  }

  async #tryTake(observer: LeaseObserver): Promise<boolean> {
    const { store, clock, claim, log } = this.#options;
    if ((await takeLease(store.db, claim)) !== null) return true;
    const readMs = clock.nowMs();
    const lease = await readLease(store.db, claim.name);
    // What was read so slowly may be old: no read at all, then.
    if (lease === null || clock.nowMs() - readMs > MAX_READ_MS) return false;
    const reading = { id: lease.instance, counter: lease.counter };
    // The write before this read went through, so it is not this process that is cut off.
    if (observer.observe([reading], readMs, true).length === 0) return false;
    if (!(await expireLease(store.db, lease))) return false;
    log.warn({ lease: lease.name, holder: lease.instance }, "lease of a task taken over");
    return (await takeLease(store.db, claim)) !== null;
  }

  async #hold(heldSinceMs: number, signal: AbortSignal, succeeded: () => void): Promise<"done" | "lost"> {
    const { store, claim, log, work } = this.#options;
    const lost = new AbortController();
    const ending = new AbortController();
    const renewing = this.#renewUntil(ending.signal, heldSinceMs, lost);
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
      await releaseLease(store.db, claim.name, claim.instance).catch((err) =>
        // It runs out instead.
        log.warn({ err, lease: claim.name }, "lease of a task was not given back"),
      );
    }
  }

  async #renewUntil(ending: AbortSignal, firstHeldMs: number, lost: AbortController): Promise<void> {
    const { clock, log, claim } = this.#options;
    const held = { sinceMs: firstHeldMs };
    const lose = (why: string) => {
      if (lost.signal.aborted) return;
      log.warn({ lease: claim.name }, why);
      lost.abort(new Error(why));
    };
    const over = AbortSignal.any([ending, lost.signal]);
    const doubting = this.#doubtUntil(over, held, () => lose("lease of a task in doubt"));
    while (!over.aborted) {
      await clock.sleep(this.#renewEveryMs, over).catch(() => {});
      if (over.aborted) break;
      const startMs = clock.nowMs();
      try {
        const counter = await renewLease(this.#options.store.db, claim.name, claim.instance);
        if (counter === null) lose("lease of a task lost");
        held.sinceMs = startMs;
        this.#failures = 0;
      } catch (err) {
        this.#noteFailure(err);
      }
    }
    await doubting;
  }

  /** Doubt has to come in time even while a renewal waits for its answer. */
  async #doubtUntil(over: AbortSignal, held: { readonly sinceMs: number }, onDoubt: () => void): Promise<void> {
    const { clock } = this.#options;
    while (!over.aborted) {
      const restMs = held.sinceMs + this.#expiryMs - clock.nowMs();
      if (restMs <= 0) return onDoubt();
      await clock.sleep(restMs, over).catch(() => {});
    }
  }

  #noteFailure(err: unknown): void {
    this.#failures += 1;
    const { log, claim } = this.#options;
    if (this.#failures === 1) log.warn({ err, lease: claim.name }, "lease of a task cannot be told");
  }
}
