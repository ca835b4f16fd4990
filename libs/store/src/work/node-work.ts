import type { Desired } from "@rollcall/domain";
import { sql } from "kysely";
import type { Db } from "../database/store.ts";
import { type ChangePosition, type Changes, changedSince } from "./changes.ts";

/** What a node is told of one execution. */
export interface WorkReference {
  readonly id: string;
  readonly desired: Desired;
  readonly specDigest: Buffer;
  readonly index: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  /** Whether a report of its node named it: then it was started there, or will never be. */
  readonly reported: boolean;
}

/** What a node should run, whole or by what changed. */
export interface NodeWork {
  readonly nodeId: string;
  /** All changes up to this one are in it. */
  readonly generation: bigint;
  readonly references: readonly WorkReference[];
}

/** What is asked for a node: what changed after a generation; after 0 all that it should run, or stop. */
export interface NodeWorkQuery {
  readonly nodeId: string;
  readonly after: bigint;
}

/**
 * Read what nodes should run. A node has 1,000 executions at most; ask for a few at a time. One of which no work was
 * ever placed on is left out.
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
      -- What the node runs, and the record did not know, goes on until an operator decides.
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

/** Those of a node's executions whose end has been recorded: the node may forget them. */
export async function readForgettable(db: Db, nodeId: string, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<{ readonly id: string }>`
    select id from executions where id = any(${ids}) and node_id = ${nodeId} and desired = 'FORGET'`.execute(db);
  return rows.map(({ id }) => id);
}

/** The node of an execution, known to the record or only reported; null when there is none. */
export async function nodeOfExecution(db: Db, id: string): Promise<string | null> {
  const { rows } = await sql<{ readonly nodeId: string }>`
    select node_id as "nodeId" from executions where id = ${id}
    union all select node_id from execution_observations where execution_id = ${id}
    limit 1`.execute(db);
  return rows[0]?.nodeId ?? null;
}

/** The nodes whose work changed since a position, with its generation; a node may come twice. */
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
