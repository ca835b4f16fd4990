import type { MetricsRegistry } from "@rollcall/process";
import type { Store } from "@rollcall/store";
import type { AdminServices } from "./admin-services.ts";

/** What the process gives to admin. */
export interface AdminProcess extends AdminServices {
  readonly store: Store;
  /** The process, unique for each start. */
  readonly instance: string;
  readonly metrics: MetricsRegistry;
}
