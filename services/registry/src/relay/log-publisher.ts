import type { OutwardEvent, PublishSession } from "@rollcall/events";
import { type Clock, fullJitter, type Logger } from "@rollcall/process";
import {
  type EventBatch,
  type EventRow,
  openRelay,
  RELAY_LEASE,
  type RelayCursor,
  type ReservedStore,
  saveRelay,
} from "@rollcall/store";
import type { LogWake } from "../watch/log-wake.ts";
import { Waiter } from "../watch/waiter.ts";
import type { LogReader } from "./log-reader.ts";
import type { Outward, RelayTiming } from "./outward.ts";

/** The inputs for publishing the log. */
export interface LogPublisherOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** The name of the process in leases. */
  readonly instance: string;
  readonly wake: Pick<LogWake, "ready" | "join">;
  readonly outward: Outward;
  readonly reader: LogReader;
  readonly timing: RelayTiming;
}

/** One session of publishing under one generation of the cursor. */
interface Journey {
  readonly session: PublishSession;
  readonly logId: string;
  readonly generation: number;
  readonly isFirst: boolean;
}

const BEGIN_WITHIN_MS = 10_000;
const LONGEST_PAUSE = 20;
// Number of consecutive failures after which this process gives up, so that another process can try.
const MOST_FAILURES = 5;

/** Publishes the log, from its cursor on, while this process holds the lease. It survives outages of NATS. */
export class LogPublisher {
  readonly #options: LogPublisherOptions;
  readonly #waiter = new Waiter();
  #publisher: {
    readonly logId: string;
    readonly begin: ReturnType<Outward["createPublisher"]>;
  } | null = null;
  #journey: Journey | null = null;
  #isMoved = false;

  constructor(options: LogPublisherOptions) {
    this.#options = options;
  }

  /**
   * Compare the session with the stored cursor. If the cursor's generation is newer, or the history of the log has
   * changed, end the session; publishing then restarts from the stored cursor.
   */
  observe({ generation }: Pick<RelayCursor, "generation">, logId: string): void {
    const journey = this.#journey;
    if (journey !== null && (generation > journey.generation || logId !== journey.logId)) {
      this.#isMoved = true;
      journey.session.end(new Error("the cursor was moved back, or the event log was replaced"));
    }
    this.#waiter.wake();
  }

  /** Publish until the signal aborts. Rejects after several consecutive failures. */
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { wake, log } = this.#options;
    await wake.ready(signal);
    const leave = wake.join(this.#waiter);
    signal.addEventListener("abort", this.#waiter.wake, { once: true });
    let failures = 0;
    try {
      while (!signal.aborted) {
        try {
          await this.#travel(signal, () => {
            failures = 0;
            succeeded();
          });
        } catch (err) {
          if (signal.aborted) return;
          failures += 1;
          if (failures >= MOST_FAILURES) throw err;
          log.warn({ err, failures }, "relay interrupted; resuming from its cursor");
          await this.#pause(failures, signal);
        }
      }
    } finally {
      leave();
      signal.removeEventListener("abort", this.#waiter.wake);
    }
  }

  /**
   * Publish from the stored cursor. Returns when the cursor was moved. Rejects when the session ends for another
   * reason.
   */
  async #travel(signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { store, log, instance } = this.#options;
    const logId = await store.refreshLogId();
    const cursor = await openRelay(store.db, { name: RELAY_LEASE, instance });
    if (cursor === null) throw new Error("the relay does not hold its lease");
    const session = await this.#begin(logId, cursor.revision, signal);
    const { generation } = cursor;
    this.#isMoved = false;
    const journey = { session, logId, generation, isFirst: cursor.revision === 0n };
    this.#journey = journey;
    session.ended.addEventListener("abort", this.#waiter.wake, { once: true });
    log.info({ after: `${session.after}` }, "relaying events");
    try {
      const isKept = session.after === cursor.revision || (await this.#save(session.after, journey));
      if (isKept) await this.#publish(journey, signal, onProgress);
    } finally {
      this.#journey = null;
      session.end(new Error("the relay has ended this session"));
    }
  }

  #begin(logId: string, cursor: bigint, signal: AbortSignal): Promise<PublishSession> {
    const known = this.#publisher;
    const publisher = known?.logId === logId ? known.begin : this.#options.outward.createPublisher(logId);
    this.#publisher = { logId, begin: publisher };
    return publisher.begin(cursor, AbortSignal.any([signal, AbortSignal.timeout(BEGIN_WITHIN_MS)]));
  }

  async #publish(journey: Journey, signal: AbortSignal, onProgress: () => void): Promise<void> {
    const { reader } = this.#options;
    const { session, logId } = journey;
    const read = (after: bigint) => {
      const reading = reader.read({ after, logId, isFirst: journey.isFirst && after === 0n });
      // Ignore the rejection. The code that awaits the read handles its error; if no code awaits the read any
      // longer, the error does not matter.
      reading.catch(() => {});
      return reading;
    };
    let position = session.after;
    let next = read(position);
    while (!signal.aborted) {
      const batch = await next;
      // The log has another history now. If the database is a restored copy, its cursor says how far that copy was
      // relayed.
      if (batch === null) return this.#noteReplaced(logId);
      if (session.ended.aborted) return this.#endOf(session);
      if (batch.events.length === 0) {
        await this.#rest(session);
        onProgress();
        next = read(position);
        continue;
      }
      // Read the next batch while this batch is being published.
      const isFull = reader.isFull(batch);
      if (isFull) next = read(batch.through);
      const { through, failure } = await session.publish(this.#outward(batch, logId), signal);
      if (through !== null) {
        position = through;
        if (!(await this.#save(position, journey))) return;
        onProgress();
      }
      if (failure !== null) return this.#endOf(session);
      if (!isFull) next = read(position);
    }
  }

  /** Wait for a wake-up when nothing is left to publish. Check from time to time whether the stream still exists. */
  async #rest(session: PublishSession): Promise<void> {
    const { clock, timing } = this.#options;
    const sinceMs = clock.nowMs();
    if (sinceMs - this.#checkedAtMs >= timing.checkEveryMs) {
      this.#checkedAtMs = sinceMs;
      await session.check();
      if (session.ended.aborted) return;
    }
    await this.#waiter.rest();
  }
  #checkedAtMs = Number.NEGATIVE_INFINITY;

  /** @throws The reason why the session ended, unless the cursor was moved. */
  #endOf(session: PublishSession): void {
    if (this.#isMoved) return;
    throw new Error("publishing was interrupted", { cause: session.ended.reason });
  }

  #save(revision: bigint, { generation, logId }: Journey): Promise<boolean> {
    return saveRelay(this.#options.store, { revision, generation, logId });
  }

  #noteReplaced(before: string): void {
    const { store, log } = this.#options;
    log.error({ before, after: store.logId() }, "event log replaced; the relay resumes from its cursor");
  }

  #outward({ events }: EventBatch, logId: string): readonly OutwardEvent[] {
    const clusterId = this.#options.store.clusterId();
    return events.map((event) => toOutward(event, logId, clusterId));
  }

  async #pause(failures: number, signal: AbortSignal): Promise<void> {
    const { clock, timing } = this.#options;
    const baseMs = timing.pauseMs;
    const maxMs = baseMs * LONGEST_PAUSE;
    const ms = fullJitter({ attempt: failures - 1, baseMs, maxMs, random01: Math.random() });
    // Ignore the rejection, because sleep() rejects only when the signal aborts, which the loop itself checks.
    await clock.sleep(ms, signal).catch(() => {});
  }
}

function toOutward(event: EventRow, logId: string, clusterId: string): OutwardEvent {
  const { id, revision, atMs, type, subject, actor, reason, message, before, after } = event;
  return {
    ...{ id, revision, timeMs: atMs, type, subject, actor, reason, message },
    ...{ before, after, logId, clusterId },
  };
}
