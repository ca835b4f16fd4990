import type { Execution, JobType } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import type { Db, Tx } from "../database/store.ts";
import { getExecutions } from "./executions.ts";

/** A running execution that the store did not know. */
export interface Orphan {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly specDigest: Uint8Array;
  /** The ports that the execution uses, according to its node. */
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
}

/** Assign orphans to their jobs, and notify their nodes. Their resources are already allocated. */
export async function saveAdopted(tx: Tx, adopted: readonly Execution[]): Promise<void> {
  if (adopted.length === 0) return;
  const ids = adopted.map(({ id }) => id);
  await sql`update execution_observations set unknown = false where execution_id = any(${ids}) and unknown`.execute(tx);
  const items = adopted.map(({ id, version, run, index, nodeId }) => ({ id, version, run, index, nodeId }));
  await sql`
    with wanted as materialized (
      select * from ${rowsFrom(items, sql`id text, version integer, run integer, index integer, "nodeId" text`)} as i
    ),
    raised as (
      update node_allocations as a set generation = nextval('work_generations'), changed = pg_current_xact_id()
      where a.node_id in (select "nodeId" from wanted)
      returning a.node_id, a.generation
    )
    update executions as e set
      version = w.version, run = w.run, index = w.index, state = 'LIVE', reason = '', message = '',
      generation = r.generation,
      changed = pg_current_xact_id()
    from wanted as w
    join raised as r on r.node_id = w."nodeId"
    where e.id = w.id and e.state = 'ORPHANED'`.execute(tx);
}

const ORPHAN_COLUMNS = sql`id text, job text, "nodeId" text, digest text, ports jsonb, "gpuUuids" text[]`;

/** Store orphans, so that they are shown. They hold no resources. */
export async function addOrphans(tx: Tx, orphans: readonly Orphan[]): Promise<void> {
  if (orphans.length === 0) return;
  const items = orphans.map(({ specDigest, ...orphan }) => ({
    ...orphan,
    digest: Buffer.from(specDigest).toString("hex"),
  }));
  await sql`
    insert into executions (
      id, job, version, run, index, node_id, desired, generation, spec_digest, millicores, memory_bytes, disk_bytes,
      holds, attempt, state, reason, ports, gpu_uuids
    )
    select w.id, w.job, 0, 0, 0, w."nodeId", 'RUN', 0, decode(w.digest, 'hex'), 0, 0, 0, false, 0, 'ORPHANED',
      'UNKNOWN_TO_STORE', w.ports, w."gpuUuids"
    from ${rowsFrom(items, ORPHAN_COLUMNS)} as w
    on conflict on constraint executions_pkey do nothing`.execute(tx);
}

/** An orphan whose node was deleted or rejected. */
export interface HomelessOrphan {
  readonly execution: Execution;
  /** The type of the orphan's job; null if the store does not have the job. */
  readonly type: JobType | null;
  readonly isDeleted: boolean;
}

/** Read the orphans of deleted or rejected nodes, in order of id, starting after the given id. */
export async function readHomelessOrphans(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly HomelessOrphan[]> {
  const { rows } = await sql<{ readonly id: string; readonly type: JobType | null; readonly isDeleted: boolean }>`
    select e.id, j.type, n.id is null as "isDeleted"
    from executions as e
    left join nodes as n on n.id = e.node_id
    left join jobs as j on j.name = e.job
    where e.state = 'ORPHANED' and (n.id is null or n.membership = 'REJECTED') and e.id > ${after}
    order by e.id
    limit ${limit}`.execute(db);
  const found = new Map(rows.map((row) => [row.id, row]));
  return (await getExecutions(db, [...found.keys()])).flatMap(({ execution }) => {
    const row = found.get(execution.id);
    return row === undefined ? [] : [{ execution, type: row.type, isDeleted: row.isDeleted }];
  });
}
