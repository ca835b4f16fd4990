import type { Clock, Logger, MetricsRegistry } from "@rollcall/runtime";
import type { Store } from "@rollcall/store";
import type { RegistryConfig } from "./config.ts";
import type { PageTokens } from "./page-token.ts";
import type { Registrar } from "./registration/registrar.ts";
import type { WatchLimits } from "./watch/watch-limits.ts";
import type { Watches } from "./watch/watches.ts";

/** What the registry is made of. */
export interface RegistryDeps {
  readonly store: Store;
  readonly config: RegistryConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Other limits of watches than the usual ones. */
  readonly watchLimits?: Partial<WatchLimits>;
}

/** What its methods share. */
export interface Deps extends RegistryDeps {
  readonly registrar: Registrar;
  readonly pageTokens: PageTokens;
  readonly watches: Watches;
}
