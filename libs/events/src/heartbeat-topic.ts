import type { NatsConnection } from "@nats-io/transport-node";
import type { MetricsRegistry } from "@rollcall/process";
import type { NatsLink } from "./connect-nats.ts";
import { type HeartbeatMetrics, heartbeatMetrics } from "./metrics.ts";

/** A heartbeat as it was received. */
export interface OutwardHeartbeat {
  readonly nodeId: string;
  readonly sequence: number;
}

/** What the topic needs. */
export interface HeartbeatTopicOptions {
  readonly link: Pick<NatsLink, "connection">;
  /** The NATS subject of every heartbeat. */
  readonly subject: string;
  /** Heartbeats on their way to the server at a time; further ones are dropped. Default 4,096. */
  readonly limit?: number;
  readonly metrics?: MetricsRegistry;
}

const DEFAULT_LIMIT = 4_096;

/**
 * Heartbeats as plain NATS messages, {"NodeID": ..., "Sequence": ...} as Bacalhau writes them. No caller waits for them
 * and nothing repeats them: when NATS is away or slow they are dropped and counted.
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

  /** Send a heartbeat, or drop it: false. It never blocks and never throws. */
  publish(heartbeat: OutwardHeartbeat): boolean {
    const { connection } = this.#options.link;
    if (connection === null || connection.isClosed()) return this.#drop("away");
    if (connection !== this.#connection) this.#adopt(connection);
    if (this.#underWay >= this.#limit) return this.#drop("slow");
    const message = { NodeID: heartbeat.nodeId, Sequence: heartbeat.sequence };
    try {
      connection.publish(this.#options.subject, JSON.stringify(message));
    } catch {
      // Closed this very moment.
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

  /** What was on its way over another connection has arrived or is lost. */
  #adopt(connection: NatsConnection): void {
    this.#connection = connection;
    this.#underWay = 0;
    this.#isFlushing = false;
  }

  /**
   * The server's answer to a ping shows that it has read all that was sent before: without it, a slow server would be
   * sent to without bounds.
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
    // It fails only when the connection is lost, and then the next one starts again.
    connection.flush().then(onAnswer, () => {});
  }
}
