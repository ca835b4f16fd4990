import type { NatsConnection } from "@nats-io/transport-node";
import type { MetricsRegistry } from "@rollcall/process";
import type { NatsLink } from "./connect-nats.ts";
import { type HeartbeatMetrics, heartbeatMetrics } from "./metrics.ts";

/** A heartbeat to publish. */
export interface OutwardHeartbeat {
  readonly nodeId: string;
  readonly sequence: number;
}

export interface HeartbeatTopicOptions {
  readonly link: Pick<NatsLink, "connection">;
  /** The NATS subject for all heartbeats. */
  readonly subject: string;
  /** Maximum number of heartbeats in flight; more are dropped. Default 4,096. */
  readonly limit?: number;
  readonly metrics?: MetricsRegistry;
}

const DEFAULT_LIMIT = 4_096;

/**
 * Publishes heartbeats as plain NATS messages in Bacalhau's format: {"NodeID": ..., "Sequence": ...}. Delivery is
 * best effort: when NATS is unavailable or slow, heartbeats are dropped and counted.
 */
export class HeartbeatTopic {
  readonly #options: HeartbeatTopicOptions;
  readonly #limit: number;
  readonly #metrics: HeartbeatMetrics;
  #connection: NatsConnection | null = null;
  #underWay = 0;
  #isFlushing = false;

  constructor(options: HeartbeatTopicOptions) {
    this.#options = options;
    this.#limit = options.limit ?? DEFAULT_LIMIT;
    this.#metrics = heartbeatMetrics(options.metrics);
  }

  /** Send a heartbeat. Returns false if it was dropped. Never blocks and never throws. */
  publish(heartbeat: OutwardHeartbeat): boolean {
    const { connection } = this.#options.link;
    if (connection === null || connection.isClosed()) return this.#drop("away");
    if (connection !== this.#connection) this.#adopt(connection);
    if (this.#underWay >= this.#limit) return this.#drop("slow");
    const message = { NodeID: heartbeat.nodeId, Sequence: heartbeat.sequence };
    try {
      connection.publish(this.#options.subject, JSON.stringify(message));
    } catch {
      // Drop the heartbeat, because the connection was closed after the check above.
      return this.#drop("away");
    }
    this.#underWay += 1;
    this.#metrics.sent();
    if (!this.#isFlushing) this.#flush(connection);
    return true;
  }

  #drop(reason: "away" | "slow"): false {
    this.#metrics.dropped(reason);
    return false;
  }

  /**
   * Start counting for a new connection: messages in flight on the previous connection have arrived or are lost.
   */
  #adopt(connection: NatsConnection): void {
    this.#connection = connection;
    this.#underWay = 0;
    this.#isFlushing = false;
  }

  /**
   * Ping the server. Its response shows that the server has read everything sent before the ping. Without pings,
   * the buffer for a slow server would grow without limit.
   */
  #flush(connection: NatsConnection): void {
    const covered = this.#underWay;
    this.#isFlushing = true;
    const onAnswer = () => {
      if (connection !== this.#connection) return;
      this.#underWay -= covered;
      this.#isFlushing = false;
      if (this.#underWay > 0) this.#flush(connection);
    };
    // Ignore a failed flush: it means that the connection is lost, and #adopt() starts again with the next
    // connection.
    connection.flush().then(onAnswer, () => {});
  }
}
