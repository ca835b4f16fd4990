import {
  type ConnectionState,
  type HealthState,
  type HoldKind,
  type MembershipState,
  type NodeType,
  RESOURCE_FACTS,
  type SchedulingState,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import { KNOWS_ESSENTIALS, lacksFacts } from "./node-rows.ts";

/** How many nodes of one type exist, and how many are connected. */
export interface NodeCounts {
  readonly total: number;
  readonly connected: number;
}

/** How many compute nodes have one combination of states. */
export interface StateCount {
  readonly membership: MembershipState;
  /** The effective health, including marks that operators set. */
  readonly health: HealthState;
  readonly scheduling: SchedulingState;
  readonly count: number;
}

/** The sum of the hardware of nodes. */
export interface Capacity {
  /** The number of logical processors. */
  readonly cores: bigint;
  readonly memoryBytes: bigint;
  readonly diskBytes: bigint;
  readonly gpus: number;
}

/** Resources that nodes offer to executions, or that are allocated to executions. */
export interface WorkSum {
  readonly millicores: bigint;
  readonly memoryBytes: bigint;
  readonly diskBytes: bigint;
  readonly gpus: bigint;
  readonly executions: bigint;
}

/** The numbers of nodes by state, and their capacity. */
export interface ClusterSummary {
  readonly orchestrators: NodeCounts;
  readonly compute: NodeCounts;
  /** The combinations of states that occur, in order of the states' names. */
  readonly states: readonly StateCount[];
  /**
   * The number of approved compute nodes with each kind of hold, in order of the kinds' names. A node can have
   * several kinds.
   */
  readonly holds: readonly { readonly kind: HoldKind; readonly count: number }[];
  /** The number of compute nodes that can take work. */
  readonly mayTakeWork: number;
  /** The capacity of approved compute nodes. */
  readonly total: Capacity;
  /** The capacity of the nodes that can take work, without GPUs that an agent cannot determine. */
  readonly available: Capacity;
  /** The resources that approved compute nodes offer to executions. */
  readonly offered: WorkSum;
  /** The resources allocated to executions. */
  readonly allocated: WorkSum;
}

interface Group extends Omit<StateCount, "count">, Capacity {
  readonly type: NodeType;
  readonly connection: ConnectionState;
  /** Whether the agents of these nodes can determine the resources that every execution uses. */
  readonly knowsEssentials: boolean;
  readonly knownGpus: number;
  readonly nodes: number;
}

/** Count the nodes of the cluster. The cost grows with the number of nodes. */
export async function clusterSummary(db: Db): Promise<ClusterSummary> {
  const [groups, holds, work] = [await readGroups(db), await readHolds(db), await readWork(db)];
  const compute = groups.filter(({ type }) => type === "COMPUTE");
  const available = compute.filter(takesWork);
  return {
    orchestrators: countNodes(groups.filter(({ type }) => type === "ORCHESTRATOR")),
    compute: countNodes(compute),
    states: countStates(compute),
    holds,
    mayTakeWork: sumNodes(available),
    total: sumCapacity(compute.filter(({ membership }) => membership === "APPROVED")),
    available: sumCapacity(available.map((group) => ({ ...group, gpus: group.knownGpus }))),
    ...work,
  };
}

/** How many compute nodes have an effective label. */
export interface LabelCount {
  readonly key: string;
  readonly value: string;
  readonly count: number;
}

const MOST_KEYS = 200;
const MOST_VALUES = 50;

/**
 * Count the effective labels of compute nodes. Returns the most frequent keys in order of their names, and for each
 * key its most frequent values, most frequent first. The cost grows with the number of labels.
 */
export async function countLabels(db: Db): Promise<readonly LabelCount[]> {
  const { rows } = await sql<LabelCount>`
    with counted as (
      select l.key, l.value, count(*)::integer as nodes
      from node_labels as l
      join nodes as n on n.id = l.node_id
      where l.effective and n.type = 'COMPUTE'
      group by l.key, l.value
    ), ranked as (
      select key, value, nodes, sum(nodes) over (partition by key) as of_key,
        row_number() over (partition by key order by nodes desc, value) as place
      from counted
    ), keys as (
      select key from ranked where place = 1 order by of_key desc, key limit ${MOST_KEYS}
    )
    select key, value, nodes as count from ranked
    where place <= ${MOST_VALUES} and key in (select key from keys)
    order by key, nodes desc, value`.execute(db);
  return rows;
}

/** Count the nodes whose joining without a token caused a warning, and list the first of them in order of id. */
export async function joinedWithoutToken(
  db: Db,
  limit: number,
): Promise<{ readonly count: number; readonly ids: readonly string[] }> {
  const marked = db.selectFrom("nodes").where("joined_without_token", "=", true);
  const counted = await marked.select(({ fn }) => fn.countAll<bigint>().as("count")).executeTakeFirst();
  const rows = await marked.select("id").orderBy("id").limit(limit).execute();
  return { count: Number(counted?.count ?? 0n), ids: rows.map(({ id }) => id) };
}

/** The same rule as mayTakeWork(), for a group of compute nodes. */
function takesWork({ membership, health, scheduling, knowsEssentials }: Group): boolean {
  return membership === "APPROVED" && health === "HEALTHY" && scheduling === "ELIGIBLE" && knowsEssentials;
}

async function readGroups(db: Db): Promise<readonly Group[]> {
  const { rows } = await sql<Group & Record<"cores" | "memoryBytes" | "diskBytes", string>>`
    select
      n.type, n.membership, s.connection, scheduling_of(n.holds) as scheduling,
      case when s.marked then 'UNHEALTHY' else s.health end as health,
      ${KNOWS_ESSENTIALS} as "knowsEssentials",
      count(*)::integer as nodes,
      sum(n.cores)::text as cores,
      sum(n.memory_bytes)::text as "memoryBytes",
      sum(n.disk_bytes)::text as "diskBytes",
      sum(n.gpus)::double precision as gpus,
      coalesce(
        sum(n.gpus) filter (where not ${lacksFacts([RESOURCE_FACTS.gpus])}), 0
      )::double precision as "knownGpus"
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    group by 1, 2, 3, 4, 5, 6`.execute(db);
  return rows.map((row) => ({
    ...row,
    cores: BigInt(row.cores),
    memoryBytes: BigInt(row.memoryBytes),
    diskBytes: BigInt(row.diskBytes),
  }));
}

async function readHolds(db: Db): Promise<ClusterSummary["holds"]> {
  const { rows } = await sql<{ kind: HoldKind; count: number }>`
    select hold ->> 'kind' as kind, count(*)::integer as count
    from nodes as n, jsonb_array_elements(n.holds) as hold
    where n.holds <> '[]' and n.type = 'COMPUTE' and n.membership = 'APPROVED'
    group by 1 order by 1`.execute(db);
  return rows;
}

type WorkColumn = `${"offered" | "allocated"}_${keyof WorkSum}`;

/**
 * Sum up the offered and allocated resources. A node reports its offered resources in its information, as protobuf
 * JSON, which omits zeros.
 */
async function readWork(db: Db): Promise<Pick<ClusterSummary, "offered" | "allocated">> {
  const { rows } = await sql<Record<WorkColumn, string | null>>`
    select
      sum((n.info -> 'work' ->> 'millicores')::bigint)::text as "offered_millicores",
      sum((n.info -> 'work' ->> 'memoryBytes')::bigint)::text as "offered_memoryBytes",
      sum((n.info -> 'work' ->> 'diskBytes')::bigint)::text as "offered_diskBytes",
      sum(n.gpus)::text as "offered_gpus",
      '0' as "offered_executions",
      sum(a.millicores)::text as "allocated_millicores",
      sum(a.memory_bytes)::text as "allocated_memoryBytes",
      sum(a.disk_bytes)::text as "allocated_diskBytes",
      sum(cardinality(a.gpu_uuids))::text as "allocated_gpus",
      sum(a.executions)::text as "allocated_executions"
    from nodes as n
    left join node_allocations as a on a.node_id = n.id
    where n.type = 'COMPUTE' and n.membership = 'APPROVED' and n.info ? 'work'`.execute(db);
  const [row] = rows;
  const sumOf = (side: "offered" | "allocated"): WorkSum => {
    const of = (column: keyof WorkSum) => BigInt(row?.[`${side}_${column}`] ?? 0);
    return {
      millicores: of("millicores"),
      memoryBytes: of("memoryBytes"),
      diskBytes: of("diskBytes"),
      gpus: of("gpus"),
      executions: of("executions"),
    };
  };
  return { offered: sumOf("offered"), allocated: sumOf("allocated") };
}

function countNodes(groups: readonly Group[]): NodeCounts {
  const connected = groups.filter(({ connection }) => connection === "CONNECTED");
  return { total: sumNodes(groups), connected: sumNodes(connected) };
}

/** Merge groups that differ only in fields that are not shown, such as the connection. */
function countStates(groups: readonly Group[]): readonly StateCount[] {
  const byName = new Map<string, StateCount>();
  for (const { membership, health, scheduling, nodes } of groups) {
    const name = `${membership} ${health} ${scheduling}`;
    const count = nodes + (byName.get(name)?.count ?? 0);
    byName.set(name, { membership, health, scheduling, count });
  }
  const inOrder = [...byName].sort(([left], [right]) => (left < right ? -1 : 1));
  return inOrder.map(([, counted]) => counted);
}

function sumNodes(groups: readonly Group[]): number {
  return groups.reduce((sum, { nodes }) => sum + nodes, 0);
}

function sumCapacity(groups: readonly Group[]): Capacity {
  const none: Capacity = { cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 };
  return groups.reduce(
    (sum, group) => ({
      cores: sum.cores + group.cores,
      memoryBytes: sum.memoryBytes + group.memoryBytes,
      diskBytes: sum.diskBytes + group.diskBytes,
      gpus: sum.gpus + group.gpus,
    }),
    none,
  );
}
