import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { Logger, MetricsRegistry } from "@rollcall/process";
import type { NatsLink } from "./connect-nats.ts";
import {
  checkEventStream,
  type EventStream,
  ensureEventStream,
  readLastEvent,
  type StreamSettings,
} from "./event-stream.ts";
import { type PublisherMetrics, publisherMetrics } from "./metrics.ts";
import { PublishSession } from "./publish-session.ts";
import { decideResumePoint, type StreamMemory } from "./resume-point.ts";

export interface EventPublisherOptions {
  readonly link: Pick<NatsLink, "connected">;
  readonly stream: StreamSettings;
  /** The log whose events are published. */
  readonly logId: string;
  readonly log: Logger;
  readonly metrics?: MetricsRegistry;
  /** Maximum number of unacknowledged events. Default 1,024. */
  readonly maxInFlight?: number;
  /** Time limit for an acknowledgement, or for a response about the stream. Default 5 s. */
  readonly ackTimeoutMs?: number;
}

const DEFAULT_MAX_IN_FLIGHT = 1_024;
const DEFAULT_ACK_TIMEOUT_MS = 5_000;

/**
 * Publishes the log to a JetStream stream. A consumer that drops duplicates by id receives exactly the log,
 * whatever happens to NATS. The caller stores a cursor and starts each session with it.
 */
export class EventPublisher {
  readonly #options: EventPublisherOptions;
  readonly #metrics: PublisherMetrics;
  #session: PublishSession | null = null;
  #memory: StreamMemory | null = null;

  constructor(options: EventPublisherOptions) {
    this.#options = options;
    this.#metrics = publisherMetrics(options.metrics);
  }

  /**
   * Wait for a connection, ensure that the stream exists, and decide where to resume. Publishing resumes with the
   * first event after the session's `after`. Ends an earlier session. Rejects when the stream cannot store the
   * events, when NATS does not respond, or when the signal aborts.
   *
   * @param cursor all events up to this revision were acknowledged at some time; 0 if none were. Pass a lower
   *   revision to publish again from there.
   */
  async begin(cursor: bigint, signal?: AbortSignal): Promise<PublishSession> {
    const { link, log, stream: settings } = this.#options;
    const ackTimeoutMs = this.#options.ackTimeoutMs ?? DEFAULT_ACK_TIMEOUT_MS;
    this.#session?.end(new Error("another session has started"));
    const connection = await link.connected(signal);
    const api = { timeout: ackTimeoutMs, checkAPI: false };
    const manager = await jetstreamManager(connection, api);
    const stream = await ensureEventStream(manager, settings, log);
    const after = await this.#resumePoint(manager, stream, cursor);
    const session = new PublishSession({
      client: jetstream(connection, api),
      stream,
      streamName: settings.name,
      subjectPrefix: settings.subjectPrefix,
      maxMessageBytes: Math.min(stream.maxMessageBytes, connection.info?.max_payload ?? Number.POSITIVE_INFINITY),
      maxInFlight: this.#options.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT,
      ackTimeoutMs,
      after,
      metrics: this.#metrics,
      look: () => checkEventStream(manager, settings),
    });
    void connection.closed().then(() => session.end(new Error("the connection to nats was lost")));
    this.#session = session;
    return session;
  }

  async #resumePoint(manager: JetStreamManager, stream: EventStream, cursor: bigint): Promise<bigint> {
    const { log, logId, stream: settings } = this.#options;
    const lastEvent = await readLastEvent(manager, settings);
    // Use the last acknowledged message, not the last one in the stream, so that a loss is detected again until it
    // is repaired.
    this.#memory = this.#session?.acknowledged ?? this.#memory;
    const after = decideResumePoint({ cursor, logId, stream, memory: this.#memory, lastEvent });
    if (after < cursor) {
      this.#metrics.rewound();
      log.warn(
        { stream: settings.name, cursor: cursor.toString(), after: after.toString() },
        "nats has lost events, publishing them again",
      );
    }
    return after;
  }
}
