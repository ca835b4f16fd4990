import type {
  ConnectionState,
  HealthState,
  HoldKind,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** How many nodes there are of a type. */
export interface NodeCounts {
  readonly total: number;
  readonly connected: number;
}

/** The compute nodes that are in one combination of states. */
export interface StateCount {
  readonly membership: MembershipState;
  /** Effective: an operator's mark counts. */
  readonly health: HealthState;
  readonly scheduling: SchedulingState;
  readonly count: number;
}

/** Hardware added up. */
export interface Capacity {
  /** Logical processors. */
  readonly cores: bigint;
  readonly memoryBytes: bigint;
  readonly diskBytes: bigint;
  readonly gpus: number;
}

/** What is offered to executions, or has been given to them. */
export interface WorkSum {
  readonly millicores: bigint;
  readonly memoryBytes: bigint;
  readonly diskBytes: bigint;
  readonly gpus: bigint;
  readonly executions: bigint;
}

/** How many nodes are in which states, and what they bring. */
export interface ClusterSummary {
  readonly orchestrators: NodeCounts;
  readonly compute: NodeCounts;
  /** The combinations that occur, in the order of their names. */
  readonly states: readonly StateCount[];
  /** Approved compute nodes by kind of hold, in the order of the kinds' names; a node may have several. */
  readonly holds: readonly { readonly kind: HoldKind; readonly count: number }[];
  /** Compute nodes that may take work. */
  readonly mayTakeWork: number;
  /** What approved compute nodes bring. */
  readonly total: Capacity;
  /** What those bring that may take work. */
  readonly available: Capacity;
  /** What approved compute nodes offer to executions. */
  readonly offered: WorkSum;
  /** What executions have been given of them. */
  readonly allocated: WorkSum;
}

interface Group extends Omit<StateCount, "count">, Capacity {
  readonly type: NodeType;
  readonly connection: ConnectionState;
  readonly nodes: number;
}

/** Count the nodes of the cluster. Its cost grows with their number. */
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
    available: sumCapacity(available),
    ...work,
  };
}

/** The compute nodes that have a label in effect. */
export interface LabelCount {
  readonly key: string;
  readonly value: string;
  readonly count: number;
}

const MOST_KEYS = 200;
const MOST_VALUES = 50;

/**
 * Count the labels that are in effect on compute nodes: of the keys that most nodes have, in the order of their names,
 * the values that most nodes have, the most common first. Its cost grows with the labels of all nodes.
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

/** Nodes that joined without a token while that was warned of: how many, and the first of them in order of id. */
export async function joinedWithoutToken(
  db: Db,
  limit: number,
): Promise<{ readonly count: number; readonly ids: readonly string[] }> {
  const marked = db.selectFrom("nodes").where("joined_without_token", "=", true);
  const counted = await marked.select(({ fn }) => fn.countAll<bigint>().as("count")).executeTakeFirst();
  const rows = await marked.select("id").orderBy("id").limit(limit).execute();
  return { count: Number(counted?.count ?? 0n), ids: rows.map(({ id }) => id) };
}

/** The rule of mayTakeWork(), for compute nodes that were counted together. */
function takesWork({ membership, health, scheduling }: Group): boolean {
  return membership === "APPROVED" && health === "HEALTHY" && scheduling === "ELIGIBLE";
}

async function readGroups(db: Db): Promise<readonly Group[]> {
  const { rows } = await sql<Group & Record<"cores" | "memoryBytes" | "diskBytes", string>>`
    select
      n.type, n.membership, s.connection, scheduling_of(n.holds) as scheduling,
      case when s.marked then 'UNHEALTHY' else s.health end as health,
      count(*)::integer as nodes,
      sum(n.cores)::text as cores,
      sum(n.memory_bytes)::text as "memoryBytes",
      sum(n.disk_bytes)::text as "diskBytes",
      sum(n.gpus)::double precision as gpus
    from nodes as n
    join node_sessions as s on s.node_id = n.id
    group by 1, 2, 3, 4, 5`.execute(db);
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

/** A node says what it offers in its information, as protobuf JSON: what is 0 is left out there. */
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

/** Groups that differ in their connection alone are one here. */
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
