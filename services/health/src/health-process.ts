import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { FailedAttempts, PeerTls, StrangerLog } from "@rollcall/rpc";
import type { EventFeed, Store, WorkSignals } from "@rollcall/store";
import type { HealthConfig } from "./config.ts";
import type { AuthorityFeed } from "./session/announced-authorities.ts";
import type { StreamLimits } from "./stream/agent-stream.ts";

/** Times of the brake, in milliseconds. */
export interface BrakeTimes {
  /** In place of the process's clock. */
  readonly clock?: Clock;
  readonly everyMs?: number;
  readonly renewEveryMs?: number;
  readonly expiryMs?: number;
}

/** What the process gives to health. */
export interface HealthProcess {
  readonly store: Store;
  /** The process's feed. The process starts it when the app has been created, and closes it after the app. */
  readonly feed: Pick<EventFeed, "follow" | "caughtUpTo">;
  /** Of the same process: changes of what nodes should run. */
  readonly signals: Pick<WorkSignals, "follow">;
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly config: HealthConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Called for each heartbeat that takes effect. It must neither throw nor block. */
  readonly onBeat?: ((nodeId: string, sequence: number) => void) | null;
  /** Called for each welcomed agent, with the address of its connection as getPeer() returns it. It must not throw. */
  readonly onWelcomed?: (peer: string) => void;
  /** Called with the bytes of each piece of output that an agent brings to a reading, and its address likewise. */
  readonly onOutput?: (peer: string, bytes: number) => void;
  /** Limits failed proofs of identity; no limit when absent. */
  readonly failures?: FailedAttempts;
  /** Reports streams that never had a session; each is logged when absent. */
  readonly strangers?: StrangerLog;
  /** For how long hellos and changed nodes are gathered into one batch; 0 for tests whose clock stands still. */
  readonly gatherMs: number;
  /** How often the brake is decided, and how soon another process takes over, for tests. */
  readonly brakeTimes?: BrakeTimes;
  /** How other replicas are reached over TLS; in clear text when absent or null. */
  readonly peerTls?: PeerTls | null;
  /** What agents should trust; nothing is announced when absent or null. */
  readonly authorities?: AuthorityFeed | null;
  /** Bounds of agents' streams, for tests. */
  readonly limits?: Partial<StreamLimits>;
}
