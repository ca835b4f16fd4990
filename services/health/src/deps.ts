import type { Clock, Logger, MetricsRegistry } from "@rollcall/runtime";
import type { EventFeed, Store } from "@rollcall/store";
import type { HealthConfig } from "./config.ts";
import type { Replica } from "./replica/replica.ts";
import type { StreamLimits } from "./stream/stream-host.ts";

/** What health is made of. */
export interface HealthDeps {
  readonly store: Store;
  /** The process's feed, of all types or of those about nodes. Whoever made it starts it, and closes it after the app. */
  readonly feed: Pick<EventFeed, "subscribe" | "caughtUpTo">;
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
  /** Bounds of agents' streams, for tests. */
  readonly limits?: Partial<StreamLimits>;
}

/** What its methods share. */
export interface Deps {
  readonly store: Store;
  readonly replica: Replica;
  readonly clock: Clock;
  readonly log: Logger;
}
