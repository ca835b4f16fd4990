import {
  CONDITION_REASONS,
  type ConnectionState,
  type HealthState,
  type JobState,
  type JobType,
  type MembershipState,
  type SchedulingState,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, LaneStore } from "../database/store.ts";

/** Compute nodes that share all these states. */
export interface NodeGroup {
  readonly membership: MembershipState;
  /** The effective health, including marks that operators set. */
  readonly health: HealthState;
  readonly connection: ConnectionState;
  readonly scheduling: SchedulingState;
  readonly count: number;
}

/** Compute nodes that report the same condition. */
export interface ConditionGroup {
  readonly reason: string;
  readonly count: number;
}

/** Jobs of the same type and state. */
export interface JobGroup {
  readonly type: JobType;
  readonly state: JobState;
  readonly count: number;
}

/** Executions in the same state. */
export interface ExecutionGroup {
  readonly state: string;
  readonly count: number;
}

/** The leases of one service: leases of its processes, and leases of tasks that only one process runs at a time. */
export interface LeaseGroup {
  readonly service: string;
  readonly count: number;
  /** Age of the lease that was renewed longest ago. */
  readonly oldestMs: number;
}

/** Numbers of nodes, jobs, executions and leases in the cluster. */
export interface ClusterCensus {
  readonly nodes: readonly NodeGroup[];
  /** Conditions of approved nodes. Reasons outside CONDITION_REASONS are grouped as OTHER. */
  readonly conditions: readonly ConditionGroup[];
  readonly jobs: readonly JobGroup[];
  /** Executions that have not ended. */
  readonly executions: readonly ExecutionGroup[];
  readonly leases: readonly LeaseGroup[];
  /** The last revision of the event log. */
  readonly head: bigint;
}

/**
 * Count nodes, jobs, executions and leases. The cost grows with the number of nodes and live executions. The queries
 * do not use parallel workers, so that this background task leaves the other cores to requests.
 */
export function takeCensus(store: Pick<LaneStore, "transaction">): Promise<ClusterCensus> {
  return store.transaction(async (tx) => {
    await sql`set local max_parallel_workers_per_gather = 0`.execute(tx);
    return {
      nodes: await readNodeGroups(tx),
      conditions: await readConditionGroups(tx),
      jobs: await readJobGroups(tx),
      executions: await readExecutionGroups(tx),
      leases: await readLeaseGroups(tx),
      head: await readHead(tx),
    };
  });
}

/**
 * Count the compute nodes by their states. Nearly all nodes are approved and eligible. Count these from their
 * sessions, because the rows of nodes are five times as large. Indexes find the other nodes.
 */
async function readNodeGroups(db: Db): Promise<readonly NodeGroup[]> {
  const { rows } = await sql<NodeGroup>`
    with unusual as (
      select id, membership, scheduling_of(holds) as scheduling
      from nodes
      where membership in ('PENDING', 'REJECTED')
        or scheduling_of(holds) in ('INELIGIBLE', 'DRAINING', 'DRAINED', 'UNCONFIRMED')
    )
    select
      coalesce(u.membership, 'APPROVED') as membership,
      s.connection,
      coalesce(u.scheduling, 'ELIGIBLE') as scheduling,
      case when s.marked then 'UNHEALTHY' else s.health end as health,
      count(*)::integer as count
    from node_sessions as s
    left join unusual as u on u.id = s.node_id
    where s.node_type = 'COMPUTE'
    group by 1, 2, 3, 4`.execute(db);
  return rows;
}

/**
 * A node with a condition has a hold, so an index finds it. Reasons are free-form and would create any number of
 * metric series, so unknown ones are grouped.
 */
async function readConditionGroups(db: Db): Promise<readonly ConditionGroup[]> {
  const { rows } = await sql<ConditionGroup>`
    select
      case when reported.reason = any(${CONDITION_REASONS as readonly string[]}::text[])
        then reported.reason else 'OTHER' end as reason,
      count(distinct n.id)::integer as count
    from nodes as n,
      jsonb_to_recordset(coalesce(n.info -> 'conditions', '[]'::jsonb)) as reported (reason text)
    where scheduling_of(n.holds) in ('INELIGIBLE', 'DRAINING', 'DRAINED', 'UNCONFIRMED')
      and n.type = 'COMPUTE' and n.membership = 'APPROVED' and n.holds @> '[{"kind": "CONDITION"}]'
    group by 1`.execute(db);
  return rows;
}

async function readJobGroups(db: Db): Promise<readonly JobGroup[]> {
  const { rows } = await sql<JobGroup>`
    select type, state, count(*)::integer as count from jobs group by 1, 2`.execute(db);
  return rows;
}

/** The query derives the same states as shownState() in the domain. */
async function readExecutionGroups(db: Db): Promise<readonly ExecutionGroup[]> {
  const { rows } = await sql<ExecutionGroup>`
    select
      case
        when e.state <> 'LIVE' then e.state
        when s.health is distinct from 'HEALTHY' or s.marked then 'LOST'
        when o.observed is null or o.observed = 'ABSENT' then 'PENDING'
        when o.observed = 'ENDED' then 'RUNNING'
        else o.observed
      end as state,
      count(*)::integer as count
    from executions as e
    left join node_sessions as s on s.node_id = e.node_id
    left join execution_observations as o on o.execution_id = e.id
    where e.state in ('LIVE', 'LOST', 'ORPHANED')
    group by 1`.execute(db);
  return rows;
}

async function readLeaseGroups(db: Db): Promise<readonly LeaseGroup[]> {
  const { rows } = await sql<LeaseGroup>`
    select
      service,
      count(*)::integer as count,
      (extract(epoch from max(clock_timestamp() - renewed_at)) * 1000)::double precision as "oldestMs"
    from leases
    group by 1`.execute(db);
  return rows;
}

async function readHead(db: Db): Promise<bigint> {
  const { rows } = await sql<{ head: bigint }>`select coalesce(max(revision), 0) as head from events`.execute(db);
  return rows[0]?.head ?? 0n;
}
