import type { PageTokens } from "@rollcall/rpc";
import type { CallStore } from "@rollcall/store";
import type { Registrar } from "./registration/registrar.ts";
import type { ServiceAccounts } from "./registration/service-accounts.ts";
import type { RegistrationGate } from "./registration-gate.ts";
import type { RegistryProcess } from "./registry-process.ts";
import type { Watches } from "./watch/watches.ts";

/** What the registry's methods work with. */
export interface RegistryServices extends Omit<RegistryProcess, "store"> {
  readonly store: CallStore;
  readonly registrar: Registrar;
  readonly gate: RegistrationGate;
  /** Null where machines do not join by service accounts. */
  readonly accounts: ServiceAccounts | null;
  readonly pageTokens: PageTokens;
  readonly watches: Watches;
}
