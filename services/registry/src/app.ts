import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Task } from "@rollcall/process";
import { createPageTokens, type PolicyTable, type ReadyReport } from "@rollcall/rpc";
import { createRecordCheck } from "@rollcall/store";
import { createRegistrar } from "./registration/registrar.ts";
import { createRegistrationGate } from "./registration-gate.ts";
import type { RegistryProcess } from "./registry-services.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { expireOrchestrators } from "./tasks/collect-nodes.ts";
import { type EventRelay, relayEvents } from "./tasks/relay-events.ts";
import { registryChores, upkeep } from "./tasks/upkeep.ts";
import { createWatches, type Watches } from "./watch/watches.ts";

/** The registry, ready to be put behind a port. */
export interface RegistryApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** Whether the record can be reached. */
  ready(): Promise<ReadyReport>;
  /** Finish the registrations that wait. Close the port first. */
  close(): Promise<void>;
}

/** Create the registry: who is here, and the log of what happened. */
export function createApp(deps: RegistryProcess): RegistryApp {
  const registrar = createRegistrar(deps);
  const gate = createRegistrationGate(deps.config, deps.clock);
  const pageTokens = createPageTokens(deps.store.clusterSecret());
  const watches = createWatches(deps);
  const relay = createRelay(deps, watches);
  const checkRecord = createRecordCheck(deps.store.reserved, deps.log);
  return {
    routes: createRoutes({ ...deps, registrar, gate, pageTokens, watches }),
    services: SERVICES,
    policies: POLICIES,
    tasks: [expireOrchestrators(deps), upkeep({ ...deps, chores: registryChores(deps) }), ...(relay?.tasks ?? [])],
    ready: async () => ({
      store: await checkRecord(),
      ...(relay === null ? {} : { relay: relay.report() }),
    }),
    close: async () => {
      await watches.close();
      await registrar.close();
    },
  };
}

function createRelay(deps: RegistryProcess, { events: hub }: Watches): EventRelay | null {
  const { outward, relayTiming: timing = {} } = deps;
  return outward == null ? null : relayEvents({ ...deps, outward, hub, timing });
}
