import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Task } from "@rollcall/process";
import { createPageTokens, type HttpPage, type PolicyTable, type ReadyReport } from "@rollcall/rpc";
import { createStoreCheck } from "@rollcall/store";
import { prometheusPage } from "./discovery/prometheus-page.ts";
import { joinPages } from "./join/join-pages.ts";
import { createRegistrar } from "./registration/registrar.ts";
import { createServiceAccounts } from "./registration/service-accounts.ts";
import { createRegistrationGate } from "./registration-gate.ts";
import type { RegistryProcess } from "./registry-process.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { expireOrchestrators } from "./tasks/collect-nodes.ts";
import { countCluster } from "./tasks/count-cluster.ts";
import { registryChores } from "./tasks/registry-chores.ts";
import { type EventRelay, relayEvents } from "./tasks/relay-events.ts";
import { upkeep } from "./tasks/upkeep.ts";
import { createWatches, type Watches } from "./watch/watches.ts";

/** The registry, ready to be served on a port. */
export interface RegistryApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  /** Pages served over plain HTTP. */
  readonly pages: readonly HttpPage[];
  /** Background work, for a supervisor to run. */
  readonly tasks: readonly Task[];
  /** Whether the store can be reached. */
  ready(): Promise<ReadyReport>;
  /** Finish queued registrations. The caller must close the port first. */
  close(): Promise<void>;
}

/** Create the registry: the list of nodes, and the event log. */
export function createApp(services: RegistryProcess): RegistryApp {
  const registrar = createRegistrar(services);
  const gate = createRegistrationGate(services.config, services.clock);
  const accounts = createServiceAccounts(services);
  const pageTokens = createPageTokens(services.store.clusterSecret());
  const watches = createWatches(services);
  const relay = createRelay(services, watches);
  const counting = countCluster({ ...services, isLeader: () => upkeepTask.active });
  const upkeepTask = upkeep({ ...services, chores: registryChores(services), onHeld: () => counting.call() });
  const checkRecord = createStoreCheck(services.store.reserved, services.log, services.clock);
  return {
    routes: createRoutes({ ...services, registrar, gate, accounts, pageTokens, watches }),
    services: SERVICES,
    policies: POLICIES,
    pages: [prometheusPage(services), ...joinPages(services)],
    tasks: [expireOrchestrators(services), upkeepTask, counting, ...(relay?.tasks ?? [])],
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

function createRelay(services: RegistryProcess, { wake }: Watches): EventRelay | null {
  const { outward, relayTiming: timing = {} } = services;
  return outward == null ? null : relayEvents({ ...services, outward, wake, timing });
}
