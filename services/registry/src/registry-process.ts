import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { EventFeed, Store } from "@rollcall/store";
import type { RegistryConfig } from "./config.ts";
import type { Outward, RelayTiming } from "./relay/outward.ts";
import type { WatchLimits } from "./watch/watch-limits.ts";

/** The objects that the process provides to the registry. */
export interface RegistryProcess {
  readonly store: Store;
  /** The process's event feed. The first watch starts it if needed; the process closes it after the app. */
  readonly feed: EventFeed;
  /** The instance that holds the process's lease. */
  readonly instance: string;
  readonly config: RegistryConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Readable warnings about who can join. */
  readonly warnings?: readonly string[];
  /** Overrides the limits of watches. */
  readonly watchLimits?: Partial<WatchLimits>;
  /** The connection to NATS; null or absent when events are not relayed. */
  readonly outward?: Outward | null;
  /** Overrides the timing of the relay. */
  readonly relayTiming?: Partial<RelayTiming>;
}
