import type {
  ConnectionState,
  HealthState,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "./store.ts";

/** How many nodes are in each state, and what they bring. */
export interface ClusterSummary {
  readonly nodes: number;
  readonly types: Readonly<Record<NodeType, number>>;
  /** Of compute nodes, as all that follow. */
  readonly memberships: Readonly<Record<MembershipState, number>>;
  readonly connections: Readonly<Record<ConnectionState, number>>;
  /** Effective health. */
  readonly healths: Readonly<Record<HealthState, number>>;
  readonly schedulings: Readonly<Record<SchedulingState, number>>;
  /** Those that may take work. */
  readonly ready: number;
  /** Sums over the approved ones. */
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

interface GroupRow {
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly connection: ConnectionState;
  readonly health: HealthState;
  readonly scheduling: SchedulingState;
  readonly nodes: number;
  readonly cores: number;
  readonly memory_bytes: number;
  readonly disk_bytes: number;
  readonly gpus: number;
}

/** Count the nodes of the cluster. Its cost grows with their number. */
export async function clusterSummary(db: Db): Promise<ClusterSummary> {
  const { rows } = await sql<GroupRow>`
    select
      n.type, n.membership, s.connection, n.scheduling,
      case when s.marked then 'UNHEALTHY' else s.health end as health,
      count(*)::integer as nodes,
      sum(n.cores)::double precision as cores,
      sum(n.memory_bytes)::double precision as memory_bytes,
      sum(n.disk_bytes)::double precision as disk_bytes,
      sum(n.gpus)::double precision as gpus
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    group by 1, 2, 3, 4, 5`.execute(db);
  const compute = rows.filter(({ type }) => type === "COMPUTE");
  const approved = compute.filter(({ membership }) => membership === "APPROVED");
  const ready = approved.filter(
    ({ health, scheduling }) => health === "HEALTHY" && scheduling === "ELIGIBLE",
  );
  return {
    nodes: sumOf(rows, "nodes"),
    types: count(rows, "type", ["ORCHESTRATOR", "COMPUTE"]),
    memberships: count(compute, "membership", ["PENDING", "APPROVED", "REJECTED"]),
    connections: count(compute, "connection", ["CONNECTED", "DISCONNECTED"]),
    healths: count(compute, "health", ["HEALTHY", "UNHEALTHY", "UNKNOWN"]),
    schedulings: count(compute, "scheduling", ["ELIGIBLE", "INELIGIBLE"]),
    ready: sumOf(ready, "nodes"),
    cores: sumOf(approved, "cores"),
    memoryBytes: sumOf(approved, "memory_bytes"),
    diskBytes: sumOf(approved, "disk_bytes"),
    gpus: sumOf(approved, "gpus"),
  };
}

type Figure = "nodes" | "cores" | "memory_bytes" | "disk_bytes" | "gpus";

function sumOf(rows: readonly GroupRow[], figure: Figure): number {
  return rows.reduce((sum, row) => sum + row[figure], 0);
}

function count<K extends Exclude<keyof GroupRow, Figure>>(
  rows: readonly GroupRow[],
  column: K,
  states: readonly GroupRow[K][],
): Readonly<Record<GroupRow[K], number>> {
  const counts = states.map((state) => [
    state,
    sumOf(
      rows.filter((row) => row[column] === state),
      "nodes",
    ),
  ]);
  return Object.fromEntries(counts) as Record<GroupRow[K], number>;
}
