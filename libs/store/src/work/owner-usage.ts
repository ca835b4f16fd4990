import type { OwnerUsage } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";

/** Have the jobs of an owner changed by one transaction at a time. Taken after the locks of jobs. */
export async function lockOwner(tx: Tx, owner: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${owner}, 7195))`.execute(tx);
}

/** Jobs that run once on every matching node count as an execution on each approved node. */
const USAGE = sql`
  count(*)::integer as jobs,
  coalesce(sum(units) filter (where state = 'ACTIVE'), 0)::bigint::text as executions,
  coalesce(sum(units * millicores) filter (where state = 'ACTIVE'), 0)::text as millicores`;

const JOBS = sql`
  select j.actor, j.state, j.millicores, case
    when j.type in ('batch', 'service') then j.count
    when j.one_node then 1
    else (select count(*) from nodes as n where n.type = 'COMPUTE' and n.membership = 'APPROVED')
  end as units
  from jobs as j`;

interface UsageRow {
  readonly jobs: number;
  readonly executions: string;
  readonly millicores: string;
}

/** What the jobs of an owner use. */
export async function readOwnerUsage(db: Db, owner: string): Promise<OwnerUsage> {
  const { rows } = await sql<UsageRow>`
    select ${USAGE} from (${JOBS} where j.actor = ${owner}) as used`.execute(db);
  return toUsage(rows[0]);
}

/** An owner with what its jobs use. */
export interface OwnerRow extends OwnerUsage {
  readonly owner: string;
}

/** Owners of jobs, by name, after one. */
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
