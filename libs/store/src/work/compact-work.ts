import { sql } from "kysely";
import type { LaneStore, Tx } from "../database/store.ts";
import { newness } from "./executions.ts";

/** How many ended executions to keep. */
export interface WorkRetention {
  /** Delete executions that ended longer ago than this. */
  readonly ageMs: number;
  /** Maximum number of ended executions of a job to keep. */
  readonly ofJob: number;
}

const ROWS_A_BATCH = 2_000;
const DAY_MS = 86_400_000;

/**
 * Delete executions that ended long ago, or that are beyond the limit of their job, together with their observations.
 * Also delete specs, observations and allocations that nothing needs any longer. Returns how many executions were
 * deleted. For each replica index of an ACTIVE job, the last execution is kept, because the next execution depends on
 * it.
 */
export async function compactWork(store: LaneStore, kept: WorkRetention, signal: AbortSignal): Promise<number> {
  let total = 0;
  for (;;) {
    signal.throwIfAborted();
    const forgotten = await store.transaction((tx) => forgetExecutions(tx, kept));
    total += forgotten;
    if (forgotten < ROWS_A_BATCH) break;
  }
  await store.transaction(forgetTheRest);
  return total;
}

async function forgetExecutions(tx: Tx, { ageMs, ofJob }: WorkRetention): Promise<number> {
  const { rows } = await sql`
    with crowded as (
      select job from executions where ended_at is not null group by job having count(*) > ${ofJob}
    ),
    beyond as (
      select ranked.id from (
        select e.id, row_number() over (partition by e.job order by ${newness("e")} desc) as place
        from executions as e join crowded as c on c.job = e.job
        where e.ended_at is not null
      ) as ranked
      where ranked.place > ${ofJob}
    ),
    gone as (
      select e.id
      from executions as e
      where e.ended_at is not null and not e.holds
        and (e.ended_at < now() - ${ageMs} * interval '1 millisecond' or e.id in (select id from beyond))
        and not exists (
          select from jobs as j
          where j.name = e.job and j.state = 'ACTIVE' and not exists (
            select from executions as n where n.job = e.job and n.index = e.index and ${newness("n")} > ${newness("e")}
          )
        )
        -- An execution that a node still runs is shown until it has stopped.
        and not exists (
          select from execution_observations as o join nodes as n on n.id = o.node_id
          where o.execution_id = e.id and o.observed in ('STARTING', 'RUNNING', 'READY') and o.missing < 2
        )
      limit ${ROWS_A_BATCH}
    ),
    unsaid as (delete from execution_observations as o using gone where o.execution_id = gone.id)
    delete from executions as e using gone where e.id = gone.id returning e.id`.execute(tx);
  return rows.length;
}

async function forgetTheRest(tx: Tx): Promise<void> {
  await sql`
    delete from execution_specs as s
    where s.created_at < now() - ${DAY_MS} * interval '1 millisecond'
      and not exists (select from job_versions as v where v.spec_digest = s.digest)
      and not exists (select from executions as e where e.spec_digest = s.digest)`.execute(tx);
  await sql`
    delete from execution_observations as o
    where o.observed_at < now() - ${DAY_MS} * interval '1 millisecond'
      and (o.observed = 'ENDED' or o.missing > 1)
      and not exists (select from executions as e where e.id = o.execution_id)`.execute(tx);
  // Stop counting these observations towards a node's limit of unknown executions.
  await sql`
    update execution_observations as o set unknown = false
    where o.unknown and (o.observed = 'ENDED' or o.missing > 1) and o.observed_at < now() - interval '1 hour'`.execute(
    tx,
  );
  await sql`
    delete from execution_observations as o
    where o.unknown and not exists (select from nodes as n where n.id = o.node_id)
      and not exists (select from executions as e where e.id = o.execution_id)`.execute(tx);
  await sql`
    delete from node_allocations as a
    where a.executions = 0 and not exists (select from nodes as n where n.id = a.node_id)
      and not exists (select from executions as e where e.node_id = a.node_id)`.execute(tx);
}
