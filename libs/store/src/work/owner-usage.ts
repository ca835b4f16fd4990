import type { OwnerUsage } from "@rollcall/domain";
import { type RawBuilder, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/**
 * Wait for other changes to an owner's jobs, and block new ones until the transaction ends. Lock the jobs before you
 * call this.
 */
export async function lockOwner(tx: Tx, owner: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${owner}, 7195))`.execute(tx);
}

const USAGE = sql`
  count(*)::integer as jobs,
  coalesce(sum(executions), 0)::bigint::text as executions,
  coalesce(sum(millicores), 0)::text as millicores`;

/**
 * The number of executions that a job should have. A job that runs on every matching node counts as one execution on
 * each approved node.
 */
const executionsOf = (type: RawBuilder<string>, count: RawBuilder<number>, isOneNode: RawBuilder<boolean>) => sql`
  case
    when ${type} in ('batch', 'service') then ${count}
    when ${isOneNode} then 1
    else (select count(*) from nodes as n where n.type = 'COMPUTE' and n.membership = 'APPROVED')
  end`;

/**
 * The usage of each job, which is the largest of three amounts: the request of its newest version, the request that
 * remains if the update to that version halts, and the resources that its executions hold. Until the newest version
 * becomes ready, a halted update places the last ready version again. If the policy says so, the job is reverted to
 * that version, which also restores its count.
 */
const JOBS = sql`
  select j.actor,
    greatest(newest.executions, earlier.executions, held.executions) as executions,
    greatest(newest.executions * j.millicores, earlier.executions * earlier.millicores, held.millicores) as millicores
  from jobs as j
  cross join lateral (
    select case
      when j.state = 'ACTIVE' then ${executionsOf(sql`j.type`, sql`j.count`, sql`j.one_node`)} else 0
    end as executions
  ) as newest
  left join lateral (
    select ready.millicores,
      ${executionsOf(
        sql`ready.type`,
        sql`case when ready.reverts then greatest(j.count, ready.count) else j.count end`,
        sql`ready.one_node`,
      )} as executions
    from (
      select
        coalesce(lower(substr(v.spec ->> 'type', length('JOB_TYPE_') + 1)), j.type) as type,
        coalesce((v.spec ->> 'count')::integer, 0) as count,
        coalesce((v.spec -> 'resources' ->> 'millicores')::bigint, 0) as millicores,
        coalesce(v.spec -> 'constraints' ->> 'node', '') <> '' as one_node,
        j.undone is null and coalesce((j.spec -> 'update' ->> 'autoRevert')::boolean, false) as reverts
      from job_versions as v
      where j.state = 'ACTIVE' and j.ready_version <> j.version and not j.ready_version = any(j.same_versions)
        and v.job = j.name and v.version = j.ready_version
    ) as ready
    where ready.reverts or ready.type = j.type
  ) as earlier on true
  cross join lateral (
    select count(*) as executions, coalesce(sum(e.millicores), 0) as millicores
    from executions as e
    where e.job = j.name and e.holds
  ) as held`;

interface UsageRow {
  readonly jobs: number;
  readonly executions: string;
  readonly millicores: string;
}

/** Read what an owner's jobs use. */
export async function readOwnerUsage(db: Db, owner: string): Promise<OwnerUsage> {
  const { rows } = await sql<UsageRow>`
    select ${USAGE} from (${JOBS} where j.actor = ${owner}) as used`.execute(db);
  return toUsage(rows[0]);
}

/** An owner, and what the owner's jobs use. */
export interface OwnerRow extends OwnerUsage {
  readonly owner: string;
}

/** Read the owners of jobs in order of name, starting after the given name. */
export async function readOwners(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly OwnerRow[]> {
  const { rows } = await sql<UsageRow & { readonly owner: string }>`
    select actor as owner, ${USAGE}
    from (${JOBS} where j.actor > ${after}) as used
    group by actor order by actor limit ${limit}`.execute(db);
  return rows.map((row) => ({ owner: row.owner, ...toUsage(row) }));
}

function toUsage(row: UsageRow | undefined): OwnerUsage {
  return {
    jobs: row?.jobs ?? 0,
    executions: Number(row?.executions ?? 0),
    millicores: Number(row?.millicores ?? 0),
  };
}
