import type { MetricsRegistry } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { AdminServices } from "./admin-services.ts";
import type { AdminConfig } from "./config.ts";
import type { Resolve } from "./webhooks/delivery/guarded-lookup.ts";

/** What the process gives to admin. */
export interface AdminProcess extends AdminServices {
  readonly store: Store;
  /** The process, unique for each start. */
  readonly instance: string;
  readonly metrics: MetricsRegistry;
  readonly config: Pick<AdminConfig, `Webhooks.${string}` & keyof AdminConfig>;
  /** Other times of webhooks than the usual ones. */
  readonly webhookTiming?: Partial<WebhookTiming>;
  /** How the addresses of webhooks' names are found; the system's way when absent. */
  readonly resolve?: Resolve;
}

/** Other times than the usual ones, for tests and drills. In ms. */
export interface WebhookTiming {
  /** Between two looks at the log and the webhooks; 250. */
  readonly lookEveryMs: number;
  /** The first pause after a failure, which doubles; 1000. */
  readonly baseMs: number;
  /** The longest pause; five minutes. */
  readonly maxMs: number;
  /** See LeasedTaskOptions. */
  readonly renewEveryMs: number;
  readonly expiryMs: number;
}
