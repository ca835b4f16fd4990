import type { PageTokens } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";
import type { Registrar } from "./registration/registrar.ts";
import type { ServiceAccounts } from "./registration/service-accounts.ts";
import type { RegistrationGate } from "./registration-gate.ts";
import type { RegistryProcess } from "./registry-process.ts";
import type { Watches } from "./watch/watches.ts";

/** The objects that the registry's methods use. */
export interface RegistryServices extends Omit<RegistryProcess, "store"> {
  readonly store: CallStore;
  readonly registrar: Registrar;
  readonly gate: RegistrationGate;
  /**
   * The verifier of service account tokens; null when machines cannot join with
   * them.
   */
  readonly accounts: ServiceAccounts | null;
  readonly pageTokens: PageTokens;
  readonly watches: Watches;
}
