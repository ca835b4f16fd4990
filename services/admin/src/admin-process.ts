import type { MetricsRegistry } from "@rollcall/process";
import type { EventFeed, Store } from "@rollcall/store";
import type { AdminServices } from "./admin-services.ts";
import type { AdminConfig } from "./config.ts";
import type { Resolve } from "./webhooks/delivery/guarded-lookup.ts";

/** The objects that admin needs from its process. */
export interface AdminProcess extends AdminServices {
  readonly store: Store;
  /** Tells of new events, so that webhooks get them soon. */
  readonly feed: Pick<EventFeed, "start" | "follow">;
  /** Id of the process, different after each start. */
  readonly instance: string;
  readonly metrics: MetricsRegistry;
  readonly config: Pick<AdminConfig, `Webhooks.${string}` & keyof AdminConfig>;
  /** Overrides the timing of webhook deliveries. */
  readonly webhookTiming?: Partial<WebhookTiming>;
  /** Resolves the host names of webhooks; the system's resolver when absent. */
  readonly resolve?: Resolve;
}

/** Timing of webhook deliveries in milliseconds, shortened in tests and drills. */
export interface WebhookTiming {
  /** Minimum time between two scans of the event log and the webhooks. Default 250. */
  readonly scanEveryMs: number;
  /** Maximum time between two scans, when there is no new event. Default 2000. */
  readonly idleMs: number;
  /** The delay after the first failure. It doubles with each further failure. Default 1000. */
  readonly baseMs: number;
  /** The longest delay; five minutes. */
  readonly maxMs: number;
  /** See LeasedTaskOptions. */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}
