import type { Desired } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import { type ChangePosition, type Changes, changedSince } from "./changes.ts";

/** What a node should do with one execution. */
export interface WorkReference {
  readonly id: string;
  readonly desired: Desired;
  readonly specDigest: Buffer;
  readonly index: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** Whether the node has reported the execution. If so, the node must not start it again. */
  readonly reported: boolean;
}

/** What a node should run: everything, or only the changes. */
export interface NodeWork {
  readonly nodeId: string;
  /** All changes up to this generation are included. */
  readonly generation: bigint;
  readonly references: readonly WorkReference[];
}

/**
 * A query for the work of a node: the changes after a generation. With generation 0, everything that the node should
 * run or stop.
 */
export interface NodeWorkQuery {
  readonly nodeId: string;
  readonly after: bigint;
}

/**
 * Read what nodes should run. A node can have 1,000 executions, so query only a few nodes at a time. A node that never
 * had work placed on it is left out.
 */
export async function readNodeWork(db: Db, queries: readonly NodeWorkQuery[]): Promise<readonly NodeWork[]> {
  if (queries.length === 0) return [];
  const { rows } = await sql<WorkRow>`
    select a.node_id, a.generation, e.id, e.desired, e.spec_digest, e.index, e.ports, e.gpu_uuids,
      coalesce(o.observed <> 'ABSENT', false) as reported
    from unnest(${queries.map(({ nodeId }) => nodeId)}::text[], ${queries.map(({ after }) => String(after))}::bigint[])
      as q (node_id, after)
    join node_allocations as a on a.node_id = q.node_id
    left join executions as e on e.node_id = q.node_id and e.generation > q.after
      and (q.after > 0 or e.desired <> 'FORGET')
      -- Running executions that the store did not know continue until an operator decides.
      and not (e.state = 'ORPHANED' and e.desired = 'RUN')
    left join execution_observations as o on o.execution_id = e.id
    order by a.node_id, e.id`.execute(db);
  const work = new Map<string, { nodeId: string; generation: bigint; references: WorkReference[] }>();
  for (const { node_id: nodeId, generation, id, spec_digest: specDigest, gpu_uuids: gpuUuids, ...row } of rows) {
    const known = work.get(nodeId) ?? { nodeId, generation, references: [] };
    work.set(nodeId, known);
    if (id !== null) known.references.push({ ...row, id, specDigest, gpuUuids });
  }
  return [...work.values()];
}

/**
 * Find the ended executions that a node may forget: their end has been recorded, or the store no longer has them
 * because their job was deleted.
 *
 * @param ids the executions that the node reports as ended.
 */
export async function readForgettable(db: Db, nodeId: string, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<{ readonly id: string }>`
    select r.id from unnest(${ids}::text[]) as r (id) left join executions as e on e.id = r.id
    where e.id is null or (e.node_id = ${nodeId} and e.desired = 'FORGET')`.execute(db);
  return rows.map(({ id }) => id);
}

/** Find the node of an execution that is stored, or only reported; null when there is none. */
export async function nodeOfExecution(db: Db, id: string): Promise<string | null> {
  const { rows } = await sql<{ readonly nodeId: string }>`
    select node_id as "nodeId" from executions where id = ${id}
    union all select node_id from execution_observations where execution_id = ${id}
    limit 1`.execute(db);
  return rows[0]?.nodeId ?? null;
}

/**
 * Read the nodes whose work changed since a position, each with the generation of its work. A node can appear twice.
 */
export async function readChangedNodeWork(
  db: Db,
  position: ChangePosition,
): Promise<Changes<{ readonly nodeId: string; readonly generation: bigint }>> {
  const { rows } = await sql<{ readonly id: string | null; readonly generation: bigint; readonly position: string }>`
    select now.position, a.node_id as id, a.generation
    from (select pg_snapshot_xmin(pg_current_snapshot())::text as position) as now
    left join node_allocations as a on ${changedSince("a", position)}`.execute(db);
  return {
    items: rows.flatMap(({ id, generation }) => (id === null ? [] : [{ nodeId: id, generation }])),
    position: rows[0]?.position ?? position,
  };
}

interface WorkRow {
  readonly node_id: string;
  readonly generation: bigint;
  readonly id: string | null;
  readonly desired: Desired;
  readonly spec_digest: Buffer;
  readonly index: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpu_uuids: readonly string[];
  readonly reported: boolean;
}
