import { setMaxListeners } from "node:events";
import {
  afterFailure,
  afterRecovery,
  type BlockedSubject,
  type DeliveryOutcome,
  type DeliveryTerms,
  dueSubjects,
  type FailedDelivery,
  MOST_BLOCKED_SUBJECTS,
  nextDueAtMs,
  overdueSubject,
  type PauseReason,
} from "@rollcall/domain";
import { type Clock, type Logger, WakeUp } from "@rollcall/process";
import type { EventRow } from "@rollcall/store";
import type { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryStore } from "./delivery-store.ts";

/** Delivers one event, and returns the outcome. Rejects only when the signal aborts. */
export type Deliver = (event: EventRow, signal: AbortSignal) => Promise<DeliveryOutcome>;

export interface WebhookDelivererOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly terms: DeliveryTerms;
  readonly reading: DeliveryLog;
  readonly record: DeliveryStore;
  readonly deliver: Deliver;
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** Number of subjects whose events are delivered at the same time. */
const AT_A_TIME = 8;
/** Time between two saves of an idle webhook's position. */
const SAVE_IDLE_MS = 5_000;
/**
 * Time between two saves of progress during deliveries. After a crash, the deliveries since the last save are
 * repeated.
 */
const SAVE_BUSY_MS = 1_000;
const LONGEST_REST_MS = 60_000;

/**
 * Delivers the events of one webhook; events about one subject stay in order. One loop reads the event log and skips
 * blocked subjects, and another retries the blocked subjects. A subject is unblocked only when everything that the
 * first loop skipped has been delivered. Both loops check this without waiting in between, so that neither acts on old
 * data.
 */
export class WebhookDeliverer {
  readonly #options: WebhookDelivererOptions;
  readonly #blocked: Map<string, BlockedSubject>;
  /**
   * The first undelivered event of each subject whose events have been read, keyed by subject. Saved like a blocked
   * subject, so that the next process delivers the event.
   */
  readonly #underWay = new Map<string, BlockedSubject>();
  readonly #ending = new AbortController();
  readonly #reading = new WakeUp();
  readonly #retrying = new WakeUp();
  /**
   * Everything up to this revision has been read. Each event up to it is delivered, in progress, or about a blocked
   * subject.
   */
  #through: bigint;
  #savedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: WebhookDelivererOptions) {
    this.#options = options;
    const { revision, blocked } = options.record.place;
    const nowMs = options.clock.nowMs();
    this.#through = revision;
    // Retry immediately what another process postponed, because perhaps only that process could not reach the
    // receiver.
    this.#blocked = new Map(blocked.map((one) => [one.subject, { ...one, nextAtMs: nowMs, notBeforeMs: nowMs }]));
    setMaxListeners(0, this.#ending.signal);
  }

  /** Read the log again, because there may be new events. */
  wake(): void {
    this.#reading.call();
  }

  /** Deliver until the signal aborts, or the webhook is paused, changed or replaced. Rejects when the store fails. */
  async run(signal: AbortSignal): Promise<void> {
    const onAbort = () => this.#ending.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      await Promise.all([this.#guard(this.#read()), this.#guard(this.#retry())]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** When one of the two loops ends, end the other one. An abort is not an error. */
  async #guard(loop: Promise<void>): Promise<void> {
    try {
      await loop;
    } catch (error) {
      if (!this.#ending.signal.aborted) throw error;
    } finally {
      this.#ending.abort(new Error("the deliverer has ended"));
    }
  }

  async #read(): Promise<void> {
    const { signal } = this.#ending;
    const { reading, clock } = this.#options;
    while (!signal.aborted) {
      if (this.#blocked.size >= MOST_BLOCKED_SUBJECTS) {
        if (!(await this.#noteCompacted({ isReading: true }))) return;
        await this.#reading.rest(clock, { atMostMs: LONGEST_REST_MS }, signal);
        continue;
      }
      const batch = await reading.next(this.#through);
      if (batch === null || !(await this.#noteCompacted({ isReading: true }))) return;
      // There is no await between `#begin()` and the update of `#through`, so the other loop never sees only one of
      // the two changes.
      const chains = this.#chainsOf(batch.events);
      for (const [first] of chains) this.#begin(first);
      if (batch.through > this.#through) this.#through = batch.through;
      await this.#deliverChains(chains);
      if (!(await this.#advance(chains.length > 0))) return;
      if (!batch.isFull) await this.#reading.rest(clock, { atMostMs: LONGEST_REST_MS }, signal);
    }
  }

  /** The events of each subject that is not blocked, in order. */
  #chainsOf(events: readonly EventRow[]): readonly (readonly EventRow[])[] {
    const chains = new Map<string, EventRow[]>();
    for (const event of events) {
      if (this.#blocked.has(event.subject)) continue;
      const chain = chains.get(event.subject);
      if (chain === undefined) chains.set(event.subject, [event]);
      else chain.push(event);
    }
    return [...chains.values()];
  }

  async #deliverChains(chains: readonly (readonly EventRow[])[]): Promise<void> {
    const left = chains[Symbol.iterator]();
    const work = async () => {
      for (const chain of left) await this.#deliverChain(chain);
    };
    const delivered = new AbortController();
    const delivering = Promise.all(Array.from({ length: Math.min(AT_A_TIME, chains.length) }, work));
    await Promise.all([delivering.finally(() => delivered.abort()), this.#saveUntil(delivered.signal)]);
  }

  async #deliverChain(chain: readonly EventRow[]): Promise<void> {
    for (const [index, event] of chain.entries()) {
      const failure = await this.#try(event);
      this.#underWay.delete(event.subject);
      if (failure !== null) {
        this.#block(null, failure);
        return;
      }
      this.#begin(chain[index + 1]);
    }
  }

  #begin(event: EventRow | undefined): void {
    if (event === undefined) return;
    const { subject, revision: fromRevision } = event;
    const sinceMs = this.#options.clock.wallMs();
    this.#underWay.set(subject, {
      subject,
      fromRevision,
      sinceMs,
      failures: 0,
      error: "",
      nextAtMs: 0,
      notBeforeMs: 0,
    });
  }

  /** Save progress until the signal aborts, so that one slow receiver does not lose the progress of others. */
  async #saveUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(SAVE_BUSY_MS, signal).catch(() => {});
      if (signal.aborted || !(await this.#save())) return;
    }
  }

  /** Save the position of the deliveries. Returns false when this deliverer no longer owns the webhook. */
  async #advance(isDelivered: boolean): Promise<boolean> {
    const nowMs = this.#options.clock.nowMs();
    if (!isDelivered && nowMs - this.#savedAtMs < SAVE_IDLE_MS) return true;
    this.#savedAtMs = nowMs;
    return this.#save();
  }

  async #retry(): Promise<void> {
    const { signal } = this.#ending;
    const { clock, terms } = this.#options;
    while (!signal.aborted) {
      const overdue = overdueSubject(this.#blocked.values(), clock.wallMs(), terms);
      if (overdue !== null) {
        const { subject, failures, error } = overdue;
        return this.#pause("DELIVERY_FAILED", `${subject}: ${error} (after ${failures} attempts)`);
      }
      const due = dueSubjects(this.#blocked.values(), clock.nowMs()).slice(0, AT_A_TIME);
      const goOn = await Promise.all(due.map((one) => this.#retrySubject(one)));
      if (goOn.includes(false)) return;
      if (due.length > 0) continue;
      const nextMs = nextDueAtMs(this.#blocked.values());
      const restMs = nextMs === null ? LONGEST_REST_MS : Math.max(1, nextMs - clock.nowMs());
      await this.#retrying.rest(clock, { atMostMs: Math.min(LONGEST_REST_MS, restMs) }, signal);
    }
  }

  /**
   * Deliver one batch of a blocked subject. The subject stays due if it has more events. Returns false when the
   * deliverer has ended.
   */
  async #retrySubject({ subject }: BlockedSubject): Promise<boolean> {
    const { reading } = this.#options;
    const one = this.#blocked.get(subject);
    if (one === undefined) return true;
    const upTo = this.#through;
    const batch = await reading.of(one, upTo);
    if (batch === null || !(await this.#noteCompacted({ isReading: false }))) return false;
    for (const event of batch.events) {
      const failure = await this.#try(event);
      if (failure !== null) {
        this.#block(this.#blocked.get(subject) ?? one, failure);
        return this.#save();
      }
      this.#moved(subject, event.revision + 1n);
    }
    if (batch.isFull) {
      this.#moved(subject, batch.through + 1n);
      return this.#save();
    }
    // There is no await from here on, so if `#through` is unchanged, nothing was skipped since the read.
    if (this.#through !== upTo) return true;
    this.#blocked.delete(subject);
    this.#reading.call();
    return this.#save();
  }

  /**
   * Advance a blocked subject. If its delivery had failed, the receiver is reachable again, so retry other subjects
   * soon.
   */
  #moved(subject: string, fromRevision: bigint): void {
    const { clock } = this.#options;
    const nowMs = clock.nowMs();
    const hadFailed = (this.#blocked.get(subject)?.failures ?? 0) > 0;
    const soon = { nextAtMs: nowMs, notBeforeMs: nowMs };
    this.#blocked.set(subject, { subject, fromRevision, sinceMs: clock.wallMs(), failures: 0, error: "", ...soon });
    if (!hadFailed) return;
    for (const due of afterRecovery([...this.#blocked.values()], nowMs)) {
      this.#blocked.set(due.subject, due);
    }
  }

  #block(before: BlockedSubject | null, failure: FailedDelivery): void {
    const { clock, terms, random } = this.#options;
    const at = { wallMs: clock.wallMs(), nowMs: clock.nowMs() };
    this.#blocked.set(failure.subject, afterFailure(before, failure, at, terms, random()));
    this.#retrying.call();
  }

  /** Deliver one event. Returns null, or the failure. */
  async #try(event: EventRow): Promise<FailedDelivery | null> {
    const { deliver, record, log } = this.#options;
    const { subject, revision } = event;
    const outcome = await deliver(event, this.#ending.signal);
    switch (outcome.kind) {
      case "delivered":
        record.succeeded();
        return null;
      case "failed": {
        const { error, retryAfterMs } = outcome;
        record.failed(error);
        log.debug({ webhook: record.name, subject, revision: `${revision}`, error }, "webhook delivery failed");
        return { subject, revision, error, retryAfterMs };
      }
      case "gone":
        record.failed(outcome.error);
        await this.#pause("GONE", outcome.error);
        this.#ending.signal.throwIfAborted();
        return { subject, revision, error: outcome.error, retryAfterMs: 0 };
    }
  }

  async #pause(reason: PauseReason, message: string): Promise<void> {
    const { record, log } = this.#options;
    if ((await this.#save()) && (await record.pause(reason, message))) {
      log.warn({ webhook: record.name, reason, error: message }, "webhook paused");
    }
    this.#ending.abort(new Error("the webhook is paused"));
  }

  /**
   * Skip events that were compacted before they were delivered, and report them. Returns false when the deliverer has
   * ended.
   */
  async #noteCompacted({ isReading }: { readonly isReading: boolean }): Promise<boolean> {
    const { record } = this.#options;
    const compacted = await record.compactedRevision();
    // Read the positions only now, after the await, because the other loop may have advanced them.
    const revision = isReading ? this.#through : null;
    const place = record.findLost({ revision, blocked: [...this.#blocked.values()] }, compacted);
    if (place === null) return true;
    if (isReading && place.revision > this.#through) this.#through = place.revision;
    for (const one of place.blocked) this.#blocked.set(one.subject, one);
    return this.#save();
  }

  async #save(): Promise<boolean> {
    const isCurrent = await this.#options.record.save(this.#through, new Map([...this.#underWay, ...this.#blocked]));
    if (!isCurrent) this.#ending.abort(new Error("the webhook was changed, or the event log was replaced"));
    return isCurrent;
  }
}
