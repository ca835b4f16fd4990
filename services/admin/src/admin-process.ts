import type { MetricsRegistry } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { AdminServices } from "./admin-services.ts";
import type { AdminConfig } from "./config.ts";
import type { Resolve } from "./webhooks/delivery/guarded-lookup.ts";
import type { WebhookTiming } from "./webhooks/delivery/webhook-timing.ts";

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
