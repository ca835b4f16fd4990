import type {
  ConnectionState,
  HealthState,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/domain";
import type { Db } from "@rollcall/store";

/** Hardware added up. */
export interface Figures {
  readonly nodes: number;
  readonly cores: bigint;
  readonly memoryBytes: bigint;
  readonly diskBytes: bigint;
  readonly gpus: number;
}

/** The nodes of one type that are in one combination of states. */
export interface ClusterGroup extends Figures {
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly connection: ConnectionState;
  /** Effective: an operator's mark counts. */
  readonly health: HealthState;
  readonly scheduling: SchedulingState;
}

/** Count the nodes of the cluster by their states. Its cost grows with their number. */
export async function readClusterGroups(db: Db): Promise<readonly ClusterGroup[]> {
  const rows = await db
    .selectFrom("nodes as n")
    .innerJoin("node_sessions as s", "s.node_id", "n.id")
    .select(["n.type", "n.membership", "n.scheduling", "s.connection", "s.health", "s.marked"])
    .select(({ fn }) => [
      fn.countAll<bigint>().as("nodes"),
      fn.sum<string>("n.cores").as("cores"),
      fn.sum<string>("n.memory_bytes").as("memory_bytes"),
      fn.sum<string>("n.disk_bytes").as("disk_bytes"),
      fn.sum<string>("n.gpus").as("gpus"),
    ])
    .groupBy(["n.type", "n.membership", "n.scheduling", "s.connection", "s.health", "s.marked"])
    .execute();
  return rows.map((row) => ({
    type: row.type,
    membership: row.membership,
    connection: row.connection,
    health: row.marked ? "UNHEALTHY" : row.health,
    scheduling: row.scheduling,
    nodes: Number(row.nodes),
    cores: BigInt(row.cores),
    memoryBytes: BigInt(row.memory_bytes),
    diskBytes: BigInt(row.disk_bytes),
    gpus: Number(row.gpus),
  }));
}

/** Add up groups. */
export function sumFigures(groups: readonly Figures[]): Figures {
  const none: Figures = { nodes: 0, cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 };
  return groups.reduce(
    (sum, group) => ({
      nodes: sum.nodes + group.nodes,
      cores: sum.cores + group.cores,
      memoryBytes: sum.memoryBytes + group.memoryBytes,
      diskBytes: sum.diskBytes + group.diskBytes,
      gpus: sum.gpus + group.gpus,
    }),
    none,
  );
}
