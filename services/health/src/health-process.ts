import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { AnonymousLog, FailedAttempts, PeerTls } from "@rollcall/rpc";
import type { EventFeed, Store, WorkSignals } from "@rollcall/store";
import type { HealthConfig } from "./config.ts";
import type { AuthorityFeed } from "./session/announced-authorities.ts";
import type { StreamLimits } from "./stream/agent-stream.ts";

/** Timing of the brake, in milliseconds. */
export interface BrakeTimes {
  /** Replaces the process's clock. */
  readonly clock?: Clock;
  readonly everyMs?: number;
  readonly renewEveryMs?: number;
  readonly expiryMs?: number;
}

/** The objects that the process provides to the health service. */
export interface HealthProcess {
  readonly store: Store;
  /** The process's event feed. The process starts it after the app is created and closes it after the app. */
  readonly feed: Pick<EventFeed, "follow" | "caughtUpTo">;
  /** The process's signals of changed work. */
  readonly signals: Pick<WorkSignals, "follow">;
  /** The instance id under which the process holds its lease. */
  readonly instance: string;
  readonly config: HealthConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Called for each heartbeat that takes effect. The callback must neither throw nor block. */
  readonly onBeat?: ((nodeId: string, sequence: number) => void) | null;
  /** Limits failed proofs of identity; no limit when absent. */
  readonly failures?: FailedAttempts;
  /** Reports streams that never had a session. When absent, each such stream is logged. */
  readonly anonymousClients?: AnonymousLog;
  /**
   * Milliseconds for which Hellos and changed nodes are collected into one batch; 0 for tests whose clock does not
   * advance.
   */
  readonly gatherMs: number;
  /** Replaces the clock and the intervals of the brake, for tests. */
  readonly brakeTimes?: BrakeTimes;
  /** TLS for calls to other replicas; clear text when absent or null. */
  readonly peerTls?: PeerTls | null;
  /** The authorities that agents should trust; nothing is announced when absent or null. */
  readonly authorities?: AuthorityFeed | null;
  /** Limits of agents' streams, for tests. */
  readonly limits?: Partial<StreamLimits>;
}
