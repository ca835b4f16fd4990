import type { Clock, Logger } from "@rollcall/process";
import type { CallStore } from "@rollcall/store";
import type { Peers } from "./internal/peers.ts";
import type { ClusterTotals } from "./query/cluster-totals.ts";
import type { Random } from "./replica/farewell.ts";
import type { HeldView } from "./replica/held-view.ts";
import type { UnarySessions } from "./unary/unary-sessions.ts";
import type { HealthWatches } from "./watch/health-watches.ts";
import type { LogDesk } from "./work/log-desk.ts";

/** What health's methods work with. */
export interface HealthServices {
  readonly store: CallStore;
  /** The nodes of this process; none in one that only reads. */
  readonly replica: HeldView;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
  /** The other replicas. */
  readonly peers: Peers;
  readonly totals: ClusterTotals;
  /** Sessions of agents that call instead of holding a stream. */
  readonly unary: UnarySessions;
  readonly watches: HealthWatches;
  /** The output of executions on nodes that this replica holds. */
  readonly logs: LogDesk;
}
