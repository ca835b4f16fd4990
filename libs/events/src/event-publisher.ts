import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { Logger, MetricsRegistry } from "@rollcall/process";
import type { NatsLink } from "./connect-nats.ts";
import {
  type EventStream,
  ensureEventStream,
  lookAtEventStream,
  readLastEvent,
  type StreamSettings,
} from "./event-stream.ts";
import { type PublisherMetrics, publisherMetrics } from "./metrics.ts";
import { PublishSession } from "./publish-session.ts";
import { decideResumePoint, type StreamMemory } from "./resume-point.ts";

/** What the publisher needs. */
export interface EventPublisherOptions {
  readonly link: Pick<NatsLink, "connected">;
  readonly stream: StreamSettings;
  /** The log whose events are published. */
  readonly logId: string;
  readonly log: Logger;
  readonly metrics?: MetricsRegistry;
  /** Events that may wait for their acknowledgement at a time. Default 1,024. */
  readonly maxInFlight?: number;
  /** How long an acknowledgement, or an answer about the stream, may take. Default 5 s. */
  readonly ackTimeoutMs?: number;
}

const DEFAULT_MAX_IN_FLIGHT = 1_024;
const DEFAULT_ACK_TIMEOUT_MS = 5_000;

/**
 * Publishes the log to a JetStream stream, so that a consumer that deduplicates by id has exactly the log, whatever
 * happens to NATS. It keeps no cursor: the caller does, and begins a session at it.
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
   * Wait for a connection, see to the stream, and find out where to go on: behind the session's `after`. An earlier
   * session ends. Rejects when the stream cannot take the events, when NATS does not answer, and when the signal
   * aborts.
   *
   * @param cursor everything up to this revision was acknowledged once; 0 when nothing was. A lower one than that
   * publishes again from there.
   */
  async begin(cursor: bigint, signal?: AbortSignal): Promise<PublishSession> {
    const { link, log, stream: settings } = this.#options;
    const ackTimeoutMs = this.#options.ackTimeoutMs ?? DEFAULT_ACK_TIMEOUT_MS;
    this.#session?.end(new Error("another session begins"));
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
      look: () => lookAtEventStream(manager, settings),
    });
    void connection.closed().then(() => session.end(new Error("the connection to nats was lost")));
    this.#session = session;
    return session;
  }

  async #resumePoint(manager: JetStreamManager, stream: EventStream, cursor: bigint): Promise<bigint> {
    const { log, logId, stream: settings } = this.#options;
    const lastEvent = await readLastEvent(manager, settings);
    // What was acknowledged, not what was seen: a loss that is not repaired yet must be found again.
    this.#memory = this.#session?.acknowledged ?? this.#memory;
    const after = decideResumePoint({ cursor, logId, stream, memory: this.#memory, lastEvent });
    if (after < cursor) {
      this.#metrics.rewound();
      log.warn(
        { stream: settings.name, cursor: cursor.toString(), after: after.toString() },
        "nats has lost events, they are published again",
      );
    }
    return after;
  }
}
