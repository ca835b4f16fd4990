import type { Clock, Logger } from "@rollcall/process";
import type { CallStore } from "@rollcall/store";
import type { Peers } from "./internal/peers.ts";
import type { ClusterTotals } from "./query/cluster-totals.ts";
import type { Random } from "./replica/farewell.ts";
import type { LiveView } from "./replica/live-view.ts";
import type { UnarySessions } from "./unary/unary-sessions.ts";
import type { HealthWatches } from "./watch/health-watches.ts";
import type { LogProxy } from "./work/log-proxy.ts";

/** The dependencies of the health service's methods. */
export interface HealthServices {
  readonly store: CallStore;
  /** The nodes of this process; none in a query-only process. */
  readonly replica: LiveView;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** The other replicas. */
  readonly peers: Peers;
  readonly totals: ClusterTotals;
  /** Sessions of agents that use unary calls instead of a stream. */
  readonly unary: UnarySessions;
  readonly watches: HealthWatches;
  /** The output of executions on nodes that this replica holds. */
  readonly logs: LogProxy;
}
