import { JetStreamApiCodes, type JetStreamClient, type JetStreamPublishOptions, type PubAck } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { AckWindow, type WindowResult } from "./ack-window.ts";
import { CLOUD_EVENT_MEDIA_TYPE, encodeCloudEvent, type OutwardEvent } from "./cloud-event.ts";
import { type EventStream, isApiError } from "./event-stream.ts";
import type { PublisherMetrics } from "./metrics.ts";
import type { StreamMemory } from "./resume-point.ts";
import { eventSubject } from "./subjects.ts";

/** The outcome of a batch. */
export interface PublishOutcome {
  /** All events up to this revision were acknowledged; null when the first event was not. */
  readonly through: bigint | null;
  /** Why publishing stopped; null when the whole batch was acknowledged or the signal aborted. */
  readonly failure: Error | null;
}

export interface PublishSessionOptions {
  readonly client: JetStreamClient;
  readonly stream: EventStream;
  readonly streamName: string;
  readonly subjectPrefix: string;
  /** Maximum message size in bytes, including headers. */
  readonly maxMessageBytes: number;
  readonly maxInFlight: number;
  readonly ackTimeoutMs: number;
  /** Resume after this revision. */
  readonly after: bigint;
  readonly metrics: PublisherMetrics;
  /** Query the stream's current state; null when it is gone. */
  look(): Promise<EventStream | null>;
}

/** The condition for the stream to accept a message. */
type Expectation = NonNullable<JetStreamPublishOptions["expect"]>;

// The code of the server's error JSStreamWrongLastMsgIDErrF. The client has no name for this code.
const WRONG_LAST_MESSAGE_ID = 10_070;
// Bytes reserved for headers, mainly the event's id and the stream's name.
const HEADER_BYTES = 512;
// Maximum number of consecutive attempts without an acknowledgement. After duplicates, the second attempt succeeds.
// More fail only while another publisher writes to the stream.
const FUTILE_RUNS = 5;

/**
 * Publishes to one stream over one connection, starting after one revision. Ends at the first failure, because the
 * stream must then be checked again.
 */
export class PublishSession {
  /** The revision after which the caller must continue. It is below the cursor when NATS has lost events. */
  readonly after: bigint;
  readonly #options: PublishSessionOptions;
  readonly #ending = new AbortController();
  #lastSequence: number;
  #acknowledged: StreamMemory | null = null;

  constructor(options: PublishSessionOptions) {
    this.after = options.after;
    this.#options = options;
    this.#lastSequence = options.stream.lastSequence;
  }

  /**
   * Aborts when the session ends: the connection was lost, an event was not acknowledged, or the stream was replaced or
   * lost events.
   */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  /** The last message acknowledged in this session; null before the first acknowledgement. */
  get acknowledged(): StreamMemory | null {
    return this.#acknowledged;
  }

  /** End the session. Pending acknowledgements are still processed. */
  end(reason: Error): void {
    this.#ending.abort(reason);
  }

  /**
   * Publish events in the order of their revisions, and wait until each is acknowledged. A failure ends the session.
   * The caller then starts another session at its cursor. Never rejects. Only one call can run at a time.
   */
  async publish(events: readonly OutwardEvent[], signal?: AbortSignal): Promise<PublishOutcome> {
    let done = 0;
    let failure = this.#failure();
    for (let futile = 0; failure === null && done < events.length && !signal?.aborted; ) {
      const run = await this.#send(events.slice(done), signal);
      done += run.acknowledged;
      futile = run.acknowledged > 0 ? 0 : futile + 1;
      failure = run.failure === null ? this.#failure() : await this.#recover(run.failure, futile);
    }
    if (failure === null && done > 0 && !this.#options.stream.isExclusive) {
      failure = await this.#lossInBetween();
    }
    if (failure !== null) {
      this.#options.metrics.failed();
      this.end(failure);
    }
    return { through: events[done - 1]?.revision ?? null, failure };
  }

  /**
   * Check that the stream is still the same. End the session if it is not, or if the check fails. Use this when there
   * are no events for a long time, because otherwise the loss of the stream would go unnoticed. Never rejects.
   */
  async check(): Promise<void> {
    const loss = await this.#lossInBetween();
    if (loss !== null) this.end(loss);
  }

  async #send(events: readonly OutwardEvent[], signal?: AbortSignal): Promise<WindowResult> {
    const window = new AckWindow(this.#options.maxInFlight);
    const floor = this.#lastSequence;
    let predecessor: OutwardEvent | null = null;
    for (const event of events) {
      while (window.isFull) await window.answered();
      if (window.hasFailed || signal?.aborted || this.ended.aborted) break;
      window.add(this.#publishOne(event, this.#expectation(predecessor), floor));
      predecessor = event;
    }
    return await window.settled();
  }

  /**
   * Make the stream accept an event only directly after its predecessor in the log. This keeps events in order even
   * when an event is refused, and while another publisher is active, such as the former lease holder. Expecting a
   * sequence would not be safe: after an event is refused, another publisher could advance the stream to the sequence
   * that the next event expects.
   */
  #expectation(predecessor: OutwardEvent | null): Expectation {
    const { stream, streamName } = this.#options;
    // Without exclusive use, expect only the stream's name: messages of other publishers can come between two events.
    if (!stream.isExclusive) return { streamName };
    if (predecessor === null) return { streamName, lastSequence: this.#lastSequence };
    return { streamName, lastMsgID: predecessor.id };
  }

  async #publishOne(event: OutwardEvent, expect: Expectation, floor: number): Promise<void> {
    const { client, subjectPrefix, maxMessageBytes } = this.#options;
    const extra = headers();
    extra.set("content-type", CLOUD_EVENT_MEDIA_TYPE);
    const acknowledgement = await client.publish(
      eventSubject(subjectPrefix, event),
      encodeCloudEvent(event, maxMessageBytes - HEADER_BYTES),
      {
        msgID: event.id,
        headers: extra,
        timeout: this.#options.ackTimeoutMs,
        expect,
      },
    );
    this.#note(acknowledgement, floor);
  }

  #note(acknowledgement: PubAck, floor: number): void {
    const { duplicate, seq } = acknowledgement;
    if (!duplicate && seq <= floor) throw new Error("the NATS stream was replaced by another one");
    this.#lastSequence = Math.max(this.#lastSequence, seq);
    const { created } = this.#options.stream;
    this.#acknowledged = { created, lastSequence: this.#lastSequence };
    if (duplicate) this.#options.metrics.duplicates(1);
    else this.#options.metrics.published(1);
  }

  /**
   * Query the end of the stream again if another process has published. Returns null when publishing can resume,
   * otherwise the failure.
   */
  async #recover(failure: Error, futile: number): Promise<Error | null> {
    const { StreamWrongLastSequence, StreamWrongLastSequenceUnknown } = JetStreamApiCodes;
    const isOutOfStep = isApiError(
      failure,
      StreamWrongLastSequence,
      StreamWrongLastSequenceUnknown,
      WRONG_LAST_MESSAGE_ID,
    );
    if (!isOutOfStep) return failure;
    if (futile >= FUTILE_RUNS) return new Error("other publishers write to the NATS stream", { cause: failure });
    try {
      this.#lastSequence = (await this.#scanAgain()).lastSequence;
      return null;
    } catch (error) {
      return toError(error);
    }
  }

  /**
   * Check whether the stream was replaced. If the stream's sequences are unpredictable, a replacement causes no refused
   * event.
   */
  async #lossInBetween(): Promise<Error | null> {
    try {
      await this.#scanAgain();
      return null;
    } catch (error) {
      return toError(error);
    }
  }

  async #scanAgain(): Promise<EventStream> {
    const now = await this.#options.look();
    if (now === null) throw new Error("the NATS stream is gone");
    const isSame = now.created === this.#options.stream.created;
    if (isSame && now.lastSequence >= this.#lastSequence) return now;
    throw new Error("the NATS stream has lost events");
  }

  #failure(): Error | null {
    if (!this.ended.aborted) return null;
    return new Error("the publishing session has ended", { cause: this.ended.reason });
  }
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
