import type { Clock, Logger, MetricsRegistry } from "@rollcall/process";
import type { PageTokens } from "@rollcall/rpc";
import type { CallStore, Store } from "@rollcall/store";
import type { RegistryConfig } from "./config.ts";
import type { Registrar } from "./registration/registrar.ts";
import type { RegistrationGate } from "./registration-gate.ts";
import type { Outward, RelayTiming } from "./relay/outward.ts";
import type { WatchLimits } from "./watch/watch-limits.ts";
import type { Watches } from "./watch/watches.ts";

/** What the registry is made of. */
export interface RegistryDeps {
  readonly store: Store;
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

/** What its methods share. */
export interface Deps extends Omit<RegistryDeps, "store"> {
  readonly store: CallStore;
  readonly registrar: Registrar;
  readonly gate: RegistrationGate;
  readonly pageTokens: PageTokens;
  readonly watches: Watches;
}
