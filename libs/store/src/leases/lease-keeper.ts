import { LeaseObserver } from "@rollcall/domain";
import type { Clock, Logger, Task } from "@rollcall/process";
import { type OwnConnections, openOwnConnections, type ReservedStore } from "../database/store.ts";
import { endLostProcess, endOwnProcess } from "../sessions/process-end.ts";
import { type Lease, type LeaseClaim, type LeaseReport, listLeases, renewLease, takeLease } from "./leases.ts";

/** What a lease keeper needs, and whom it tells. Callbacks must neither throw nor block. */
export interface LeaseKeeperOptions {
  readonly store: ReservedStore;
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
   * addresses: whoever shows them shows them again.
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
export function createLeaseKeeper(options: LeaseKeeperOptions): LeaseKeeper {
  return new Keeper(options);
}

class Keeper implements LeaseKeeper {
  readonly name = "lease-keeper";
  readonly #options: LeaseKeeperOptions;
  readonly #renewEveryMs: number;
  readonly #expiryMs: number;
  readonly #observer: LeaseObserver;
  /** When the last renewal that succeeded was begun: until `expiryMs` later nobody can have ended the lease. */
  #heldSinceMs: number | null = null;
  #held = false;
  #failures = 0;

  constructor(options: LeaseKeeperOptions) {
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
    const { store, log, claim } = this.#options;
    // A connection of its own: when all others wait for something, the process must not be taken for gone.
    const applicationName = `${store.applicationName} lease`;
    const statementTimeoutMs = ANSWER_TIMEOUT_MS;
    const own = openOwnConnections({ url: store.url, applicationName, log, statementTimeoutMs }, 1);
    try {
      await Promise.all([this.#renewUntil(signal, own, succeeded), this.#doubtUntil(signal)]);
    } finally {
      await own.close();
    }
    this.#held = false;
    await endOwnProcess(store, claim.instance).catch((err) =>
      // Its lease runs out instead.
      log.warn({ err }, "lease was not given back"),
    );
  }

  async #renewUntil(signal: AbortSignal, own: OwnConnections, succeeded: () => void): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      const startMs = clock.nowMs();
      try {
        await this.#turn(own, startMs);
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

  async #turn(own: OwnConnections, startMs: number): Promise<void> {
    const { clock, claim, report } = this.#options;
    // A process that was stopped may come here before its other timer: the gap must not go unnoticed.
    this.#checkDoubt();
    const { instance } = claim;
    const renewed = await renewLease(own.db, instance, instance, report?.());
    if (renewed === null) {
      // Never taken, or ended by another: what the process was may be somebody else's by now.
      this.#doubt();
      const taken = await takeLease(own.db, { ...claim, name: instance });
      if (taken === null) throw new Error(`the lease ${instance} belongs to another process`);
    }
    this.#hold(startMs);
    const readMs = clock.nowMs();
    const leases = await listLeases(own.db);
    // What was read so slowly may be old: no read at all, then.
    if (clock.nowMs() - readMs <= MAX_READ_MS) await this.#observe(leases, readMs);
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

  async #observe(leases: readonly Lease[], nowMs: number): Promise<void> {
    const { store, claim, log, onExpired } = this.#options;
    const others = leases.filter(({ instance }) => instance !== claim.instance);
    const readings = others.map(({ name, instance, counter }) => ({
      // The next holder of a name is another lease.
      id: JSON.stringify([name, instance]),
      counter,
    }));
    const expired = new Set(this.#observer.observe(readings, nowMs, this.#held));
    for (const [index, lease] of others.entries()) {
      if (!expired.has(readings[index]?.id ?? "")) continue;
      if (!(await endLostProcess(store, lease, `replica:${claim.instance}`))) continue;
      log.warn({ name: lease.name, service: lease.service }, "lease of another process ended");
      onExpired?.(lease);
    }
  }
}
