import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import type { Task } from "@rollcall/process";
import type { PolicyTable, ReadyReport } from "@rollcall/rpc";
import type { HealthProcess } from "./health-process.ts";
import type { HealthServices } from "./health-services.ts";
import { connectPeers } from "./internal/connect-peers.ts";
import { ClusterTotals } from "./query/cluster-totals.ts";
import { holdsNothing } from "./replica/live-view.ts";
import { createRoutes, POLICIES, SERVICES } from "./routes.ts";
import { RemoteSessions } from "./unary/remote-sessions.ts";
import { HealthWatches } from "./watch/health-watches.ts";
import { LogProxy } from "./work/log-proxy.ts";

/** The objects that the process provides to the query side of health. */
export type QueryProcess = Pick<HealthProcess, "store" | "feed" | "instance" | "clock" | "log" | "random" | "peerTls">;

/** The query side of health without a replica, ready to be served on a port. */
export interface QueryApp {
  routes(router: ConnectRouter): void;
  readonly services: readonly DescService[];
  readonly policies: PolicyTable;
  readonly tasks: readonly Task[];
  /** Always ready, because the store is read while no replica responds. */
  ready(): ReadyReport;
  close(): Promise<void>;
}

/**
 * Create the query side of health for a process that admits no agents. It calls the replicas that hold the nodes, with
 * the methods that replicas use among themselves.
 */
export function createQueryApp(deps: QueryProcess): QueryApp {
  const { store, instance, clock, log, random = Math.random } = deps;
  const peers = connectPeers({ ...deps, store: store.reserved });
  const shared = { store, replica: holdsNothing(instance), clock, log, peers };
  const methods: HealthServices = {
    ...shared,
    ...{ random, logs: new LogProxy({ clock }) },
    totals: new ClusterTotals(shared),
    unary: new RemoteSessions({ store, peers, random, log }),
    watches: new HealthWatches({ ...shared, feed: deps.feed }),
  };
  return {
    routes: createRoutes(methods),
    services: SERVICES,
    policies: POLICIES,
    tasks: [],
    ready: () => ({}),
    close: async () => peers.close(),
  };
}
