import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { ClientAddress, FailedAttempts, PeerTls, StrangerLog } from "@rollcall/rpc";
import type { CallStore, EventFeed, Store } from "@rollcall/store";
import type { HealthConfig } from "./config.ts";
import type { Peers } from "./internal/peers.ts";
import type { ClusterTotals } from "./query/cluster-totals.ts";
import type { Random } from "./replica/farewell.ts";
import type { Replica } from "./replica/replica.ts";
import type { StreamLimits } from "./stream/agent-stream.ts";
import type { UnaryDesk } from "./unary/unary-desk.ts";
import type { HealthWatches } from "./watch/health-watches.ts";

/** Times of the brake, in milliseconds. */
export interface BrakeTimes {
  /** Another than that of the process. */
  readonly clock?: Clock;
  readonly everyMs?: number;
  readonly renewEveryMs?: number;
  readonly expiryMs?: number;
}

/** What health is made of. */
export interface HealthDeps {
  readonly store: Store;
  /** The process's feed. The process starts it when the app has been created, and closes it after the app. */
  readonly feed: Pick<EventFeed, "follow" | "caughtUpTo">;
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly config: HealthConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Numbers in [0, 1). Default Math.random. */
  readonly random?: () => number;
  /** Told of each heartbeat that took effect; absent or null for nobody. It must neither throw nor block. */
  readonly onBeat?: ((nodeId: string, sequence: number) => void) | null;
  /**
   * Told of each agent whose Hello was taken, by the address of its connection as getPeer() has it; absent for nobody.
   * It must not throw.
   */
  readonly onWelcomed?: (peer: string) => void;
  /** Who fails too often to prove who they are; not limited when absent. */
  readonly failures?: FailedAttempts;
  /** Where streams that never had a session are told of; each is logged when absent. */
  readonly strangers?: StrangerLog;
  /** Tells where an agent's stream comes from that a proxy passed on; the peer counts when absent. */
  readonly clientAddress?: ClientAddress;
  /**
   * How long hellos, and nodes that changed, are gathered after those before them; 0 for tests whose clock stands
   * still.
   */
  readonly gatherMs: number;
  /** How often the brake is decided about, and how soon another process takes that over, for tests. */
  readonly brakeTimes?: BrakeTimes;
  /** How other replicas are reached over TLS; in clear text when absent or null. */
  readonly peerTls?: PeerTls | null;
  /** Bounds of agents' streams, for tests. */
  readonly limits?: Partial<StreamLimits>;
}

/** What its methods share. */
export interface Deps {
  readonly store: CallStore;
  readonly replica: Replica;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** The other replicas. */
  readonly peers: Peers;
  readonly totals: ClusterTotals;
  /** Sessions of agents that call instead of holding a stream. */
  readonly unary: UnaryDesk;
  readonly watches: HealthWatches;
}
