import { JetStreamApiCodes, type JetStreamClient, type JetStreamPublishOptions, type PubAck } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { AckWindow, type WindowResult } from "./ack-window.ts";
import { CLOUD_EVENT_MEDIA_TYPE, encodeCloudEvent, type OutwardEvent } from "./cloud-event.ts";
import { type EventStream, isApiError } from "./event-stream.ts";
import type { PublisherMetrics } from "./metrics.ts";
import type { StreamMemory } from "./resume-point.ts";
import { eventSubject } from "./subjects.ts";

/** What happened to a batch. */
export interface PublishOutcome {
  /** The revision up to which all events of the batch are acknowledged; null when not even the first one is. */
  readonly through: bigint | null;
  /** Why it stopped there; null when the whole batch is acknowledged, or the signal aborted. */
  readonly failure: Error | null;
}

/** What a session needs; made by EventPublisher.begin(). */
export interface PublishSessionOptions {
  readonly client: JetStreamClient;
  readonly stream: EventStream;
  readonly streamName: string;
  readonly subjectPrefix: string;
  /** Bytes that one message may have, headers included. */
  readonly maxMessageBytes: number;
  readonly maxInFlight: number;
  readonly ackTimeoutMs: number;
  /** Go on behind this revision. */
  readonly after: bigint;
  readonly metrics: PublisherMetrics;
  /** Looks at the stream again; null when it is gone. */
  look(): Promise<EventStream | null>;
}

/** What a message asks of the stream that takes it. */
type Expectation = NonNullable<JetStreamPublishOptions["expect"]>;

// JSStreamWrongLastMsgIDErrF of the server, which the client does not name.
const WRONG_LAST_MESSAGE_ID = 10_070;
// For the headers, whose greatest part are the event's id and the stream's name.
const HEADER_BYTES = 512;
// Twice would do after duplicates; another publisher of the stream may get in between more often.
const FUTILE_RUNS = 5;

/**
 * Publishing to one stream over one connection, from one revision on. It ends with the first thing that goes wrong,
 * because what the stream then holds must be looked at again.
 */
export class PublishSession {
  /** The caller goes on with the first event above this revision; it is below the cursor when NATS has lost events. */
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
   * Aborts when the session has ended: the connection was lost, an event was not acknowledged, or the stream is not
   * what it was.
   */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  /** The last message that the stream acknowledged in this session; null before the first. */
  get acknowledged(): StreamMemory | null {
    return this.#acknowledged;
  }

  /** End the session; what is still to be acknowledged is answered as it comes. */
  end(reason: Error): void {
    this.#ending.abort(reason);
  }

  /**
   * Publish events in the order of their revisions, and wait until each is acknowledged. After a failure the session
   * has ended, and the caller begins another one at its cursor. It never rejects. One call at a time.
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
   * Check that the stream is still the same; when it is not, or when that is unknown, the session ends. This is for
   * long times without events, in which the loss of a stream would go unnoticed. It never rejects.
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
   * The stream takes an event only right behind the one that comes before it in the log, so that events are in order
   * whatever was refused, and with another publisher at the same time, which the former holder of the lease may be.
   * Foretold sequences would not do: one of the events behind a refused one may meet the sequence that another
   * publisher has brought about.
   */
  #expectation(predecessor: OutwardEvent | null): Expectation {
    const { stream, streamName } = this.#options;
    // Others' messages come in between.
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

  /** Null when it can go on. Otherwise another process has published, and the end of the stream must be looked up. */
  async #recover(failure: Error, futile: number): Promise<Error | null> {
    const { StreamWrongLastSequence, StreamWrongLastSequenceUnknown } = JetStreamApiCodes;
    const isOutOfStep = isApiError(
      failure,
      StreamWrongLastSequence,
      StreamWrongLastSequenceUnknown,
      WRONG_LAST_MESSAGE_ID,
    );
    if (!isOutOfStep) return failure;
    if (futile >= FUTILE_RUNS) return new Error("others write to the NATS stream", { cause: failure });
    try {
      this.#lastSequence = (await this.#lookAgain()).lastSequence;
      return null;
    } catch (error) {
      return toError(error);
    }
  }

  /** A stream whose sequences cannot be foretold may have been replaced without any event being refused. */
  async #lossInBetween(): Promise<Error | null> {
    try {
      await this.#lookAgain();
      return null;
    } catch (error) {
      return toError(error);
    }
  }

  async #lookAgain(): Promise<EventStream> {
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
