import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { EventFeed, Store } from "@rollcall/store";
import type { RegistryConfig } from "./config.ts";
import type { Outward, RelayTiming } from "./relay/outward.ts";
import type { WatchLimits } from "./watch/watch-limits.ts";

/** What the process gives to the registry. */
export interface RegistryProcess {
  readonly store: Store;
  /**
   * The process's feed. The first watch starts it where it has not been started; the process closes it after the app.
   */
  readonly feed: EventFeed;
  /** The instance of the process's lease. */
  readonly instance: string;
  readonly config: RegistryConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** What should not go unnoticed about who can join, for people. */
  readonly warnings?: readonly string[];
  /** Other limits of watches than the usual ones. */
  readonly watchLimits?: Partial<WatchLimits>;
  /** The way to NATS; null or absent when events are not to go there. */
  readonly outward?: Outward | null;
  /** Other times of the relay than the usual ones. */
  readonly relayTiming?: Partial<RelayTiming>;
}
