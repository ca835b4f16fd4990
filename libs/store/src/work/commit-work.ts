import { type Desired, type NewEvent, schedulerActor } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { ReservedStore, Tx } from "../database/store.ts";
import { endDrains } from "./drain-progress.ts";
import { WORK_CHANNEL } from "./node-work.ts";
import { holdSchedulerLease } from "./scheduler-lease.ts";
import type { JobState, StoredState } from "./work-tables.ts";

/** An execution that is placed on a node, with what it is given there. */
export interface NewExecution {
  readonly id: string;
  readonly job: string;
  readonly version: number;
  readonly index: number;
  readonly nodeId: string;
  readonly specDigest: Uint8Array;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
  readonly millicores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly previous: string | null;
  readonly attempt: number;
  readonly restarts: number;
}

/** What changes of an execution that is there; what is absent stays. A state that is final stays in any case. */
export interface ExecutionChange {
  readonly id: string;
  readonly nodeId: string;
  readonly desired?: Desired;
  readonly state?: StoredState;
  readonly reason?: string;
  readonly message?: string;
  readonly replacedBy?: string;
  /** Whether its resources are given back. */
  readonly frees?: boolean;
  /** Whether an operator's order has been seen to. */
  readonly endsOrder?: boolean;
  /** Of one that is adopted. */
  readonly place?: { readonly version: number; readonly index: number };
  /** The id of a placement without which this does not happen. */
  readonly onlyWith?: string;
}

/** What a node runs and the record did not know, which is shown from now on. It has been given nothing. */
export interface Orphan {
  readonly id: string;
  readonly job: string;
  readonly nodeId: string;
  readonly specDigest: Uint8Array;
  readonly message: string;
}

/** What the leader found of a job. */
export interface JobFinding {
  readonly name: string;
  readonly wanted: number;
  readonly waiting: number;
  readonly message: string;
  /** A change that is told, as long as JobService has changed nothing since this edition; null for none. */
  readonly change: {
    readonly edition: number;
    readonly state: JobState;
    readonly updateHalted: boolean;
    readonly updateMessage: string;
    readonly event: NewEvent;
  } | null;
}

/** What a leader decided, to be written in one transaction. */
export interface WorkCommit {
  /** The process whose lease of the scheduler it is. */
  readonly instance: string;
  readonly placements: readonly NewExecution[];
  readonly changes: readonly ExecutionChange[];
  readonly orphans: readonly Orphan[];
  readonly jobs: readonly JobFinding[];
  /** Nodes whose drains are done. */
  readonly drained: readonly string[];
  /** The events, but for those of jobs, when these placements were written. */
  readonly eventsOf: (placed: ReadonlySet<string>) => readonly NewEvent[];
}

/** What became of a commit. */
export type WorkCommitted =
  /** The lease is another's: nothing was written. */
  | { readonly outcome: "FENCED" }
  | {
      readonly outcome: "COMMITTED";
      readonly revision: bigint;
      /** Nodes that could not take what was placed on them, or not just now: none of it was written. */
      readonly refusedNodes: ReadonlySet<string>;
      readonly placed: ReadonlySet<string>;
    };

/** Write what a leader decided, unless it leads no more. */
export async function commitWork(store: ReservedStore, commit: WorkCommit): Promise<WorkCommitted> {
  const { result, revision } = await store.change(async (tx) => {
    if (!(await holdSchedulerLease(tx, commit.instance))) return { result: null, events: [] };
    // What is given back first: the same commit may give it to another.
    await giveBack(tx, commit.changes);
    const { placed, refusedNodes } = await place(tx, commit.placements);
    const changes = commit.changes.filter(({ onlyWith }) => onlyWith === undefined || placed.has(onlyWith));
    await change(tx, changes);
    await addOrphans(tx, commit.orphans);
    const jobEvents = await saveFindings(tx, commit.jobs);
    const drainEvents = await endDrains(tx, commit.drained, schedulerActor(commit.instance));
    if (placed.size > 0 || changes.length > 0) await sql`select pg_notify(${WORK_CHANNEL}, '')`.execute(tx);
    return { result: { placed, refusedNodes }, events: [...commit.eventsOf(placed), ...jobEvents, ...drainEvents] };
  });
  return result === null ? { outcome: "FENCED" } : { outcome: "COMMITTED", revision, ...result };
}

interface Taking {
  readonly nodeId: string;
  millicores: number;
  memoryBytes: number;
  diskBytes: number;
  executions: number;
  readonly gpuUuids: string[];
  readonly ports: number[];
}

async function place(tx: Tx, placements: readonly NewExecution[]) {
  const placed = new Set<string>();
  const refusedNodes = new Set<string>();
  if (placements.length === 0) return { placed, refusedNodes };
  const generations = await take(tx, placements);
  const accepted = placements.flatMap((placement) => {
    const generation = generations.get(placement.nodeId);
    if (generation === undefined) {
      refusedNodes.add(placement.nodeId);
      return [];
    }
    placed.add(placement.id);
    const { specDigest, ...item } = placement;
    return [{ ...item, generation: String(generation), digest: Buffer.from(specDigest).toString("hex") }];
  });
  if (accepted.length > 0) {
    await sql`${PREPARED}
      insert into executions (
        id, job, version, index, node_id, desired, generation, spec_digest, ports, gpu_uuids, millicores, memory_bytes,
        disk_bytes, previous, attempt, restarts
      )
      select i.id, i.job, i.version, i.index, i."nodeId", 'RUN', i.generation, decode(i.digest, 'hex'), i.ports,
        i."gpuUuids", i.millicores, i."memoryBytes", i."diskBytes", i.previous, i.attempt, i.restarts
      from ${rowsFrom(accepted, PLACEMENT_COLUMNS)} as i`.execute(tx);
  }
  return { placed, refusedNodes };
}

const PLACEMENT_COLUMNS = sql`
  id text, job text, version integer, index integer, "nodeId" text, generation bigint, digest text, ports jsonb,
  "gpuUuids" text[], millicores bigint, "memoryBytes" bigint, "diskBytes" bigint, previous text, attempt integer,
  restarts integer`;

/**
 * Take what placements are given off their nodes: the generations of those that may take work and have enough left, by
 * node. A node's rows stay as they are until the transaction ends, so that what follows a cordon is never placed before
 * it. One whose rows are being written is not waited for, since rows are locked in no order that others keep to.
 */
async function take(tx: Tx, placements: readonly NewExecution[]): Promise<ReadonlyMap<string, bigint>> {
  const takings = new Map<string, Taking>();
  for (const placement of placements) {
    const { nodeId, millicores, memoryBytes, diskBytes, gpuUuids, ports } = placement;
    const taking = takings.get(nodeId) ?? {
      ...{ nodeId, millicores: 0, memoryBytes: 0, diskBytes: 0, executions: 0, gpuUuids: [], ports: [] },
    };
    takings.set(nodeId, taking);
    taking.millicores += millicores;
    taking.memoryBytes += memoryBytes;
    taking.diskBytes += diskBytes;
    taking.executions += 1;
    taking.gpuUuids.push(...gpuUuids);
    taking.ports.push(...Object.values(ports));
  }
  const columns = sql`
    "nodeId" text, millicores bigint, "memoryBytes" bigint, "diskBytes" bigint, executions integer,
    "gpuUuids" text[], ports integer[]`;
  const { rows } = await sql<{ readonly id: string; readonly generation: bigint }>`${PREPARED}
    with wanted as materialized (select * from ${rowsFrom([...takings.values()], columns)} as i),
    able as materialized (
      select n.id,
        coalesce((n.info #>> '{work,millicores}')::bigint, 0) as millicores,
        coalesce((n.info #>> '{work,memoryBytes}')::bigint, 0) as memory_bytes,
        coalesce((n.info #>> '{work,diskBytes}')::bigint, 0) as disk_bytes
      from wanted as w
      join nodes as n on n.id = w."nodeId"
      join node_sessions as s on s.node_id = n.id
      where n.type = 'COMPUTE' and n.membership = 'APPROVED' and n.scheduling = 'ELIGIBLE'
        and s.health = 'HEALTHY' and not s.marked
      for share of n, s skip locked
    )
    update node_allocations as a set
      generation = nextval('work_generations'),
      millicores = a.millicores + w.millicores,
      memory_bytes = a.memory_bytes + w."memoryBytes",
      disk_bytes = a.disk_bytes + w."diskBytes",
      gpu_uuids = a.gpu_uuids || w."gpuUuids",
      ports = a.ports || w.ports,
      executions = a.executions + w.executions,
      changed = pg_current_xact_id()
    from wanted as w
    join able as n on n.id = w."nodeId"
    where a.node_id = w."nodeId"
      and (w.millicores = 0 or a.millicores + w.millicores <= n.millicores)
      and (w."memoryBytes" = 0 or a.memory_bytes + w."memoryBytes" <= n.memory_bytes)
      and (w."diskBytes" = 0 or a.disk_bytes + w."diskBytes" <= n.disk_bytes)
      and a.executions + w.executions <= ${MOST_EXECUTIONS_OF_NODE}
      and not a.gpu_uuids && w."gpuUuids"
      and not a.ports && w.ports
    returning a.node_id as id, a.generation`.execute(tx);
  return new Map(rows.map(({ id, generation }) => [id, generation]));
}

/** Executions that a node may have at once. */
export const MOST_EXECUTIONS_OF_NODE = 1_000;

async function giveBack(tx: Tx, changes: readonly ExecutionChange[]): Promise<void> {
  const ids = changes.filter(({ frees, onlyWith }) => frees === true && onlyWith === undefined).map(({ id }) => id);
  if (ids.length === 0) return;
  await sql`${PREPARED}
    with freed as (
      update executions set taken = false, changed = pg_current_xact_id()
      where id = any(${ids}) and taken
      returning node_id, millicores, memory_bytes, disk_bytes, gpu_uuids, ports
    ),
    sums as (
      select node_id, sum(millicores) as millicores, sum(memory_bytes) as memory_bytes, sum(disk_bytes) as disk_bytes,
        count(*) as executions
      from freed group by node_id
    )
    update node_allocations as a set
      millicores = greatest(0, a.millicores - s.millicores),
      memory_bytes = greatest(0, a.memory_bytes - s.memory_bytes),
      disk_bytes = greatest(0, a.disk_bytes - s.disk_bytes),
      executions = greatest(0, a.executions - s.executions),
      gpu_uuids = array(
        select unnest(a.gpu_uuids)
        except
        select unnest(f.gpu_uuids) from freed as f where f.node_id = a.node_id
      ),
      ports = array(
        select unnest(a.ports)
        except
        select port.value::integer from freed as f cross join lateral jsonb_each_text(f.ports) as port
        where f.node_id = a.node_id
      ),
      changed = pg_current_xact_id()
    from sums as s
    where a.node_id = s.node_id`.execute(tx);
}

const CHANGE_COLUMNS = sql`
  id text, "nodeId" text, desired text, state text, reason text, message text, "replacedBy" text, "endsOrder" boolean,
  version integer, index integer`;

async function change(tx: Tx, changes: readonly ExecutionChange[]): Promise<void> {
  if (changes.length === 0) return;
  const items = changes.map(({ onlyWith: _, frees: _frees, place: adopted, ...item }) => ({ ...item, ...adopted }));
  await sql`${PREPARED}
    with wanted as materialized (select * from ${rowsFrom(items, CHANGE_COLUMNS)} as i),
    raised as (
      update node_allocations as a
      set generation = nextval('work_generations'), changed = pg_current_xact_id()
      where a.node_id in (select "nodeId" from wanted where desired is not null)
      returning a.node_id, a.generation
    )
    update executions as e set
      desired = coalesce(w.desired, e.desired),
      generation = case when w.desired is null then e.generation else coalesce(r.generation, e.generation) end,
      state = case when e.ended_at is null then coalesce(w.state, e.state) else e.state end,
      reason = case when e.ended_at is null then coalesce(w.reason, e.reason) else e.reason end,
      message = case when e.ended_at is null then coalesce(w.message, e.message) else e.message end,
      ended_at = case
        when e.ended_at is null and w.state in ('COMPLETED', 'FAILED', 'STOPPED', 'KILLED_OOM', 'REPLACED') then now()
        else e.ended_at
      end,
      replaced_by = coalesce(w."replacedBy", e.replaced_by),
      version = coalesce(w.version, e.version),
      index = coalesce(w.index, e.index),
      order_kind = case when w."endsOrder" then null else e.order_kind end,
      order_actor = case when w."endsOrder" then null else e.order_actor end,
      order_message = case when w."endsOrder" then null else e.order_message end,
      changed = pg_current_xact_id()
    from wanted as w
    left join raised as r on r.node_id = w."nodeId"
    where e.id = w.id`.execute(tx);
}

async function addOrphans(tx: Tx, orphans: readonly Orphan[]): Promise<void> {
  if (orphans.length === 0) return;
  const items = orphans.map(({ specDigest, ...orphan }) => ({
    ...orphan,
    digest: Buffer.from(specDigest).toString("hex"),
  }));
  await sql`
    with wanted as materialized (
      select * from ${rowsFrom(items, sql`id text, job text, "nodeId" text, digest text, message text`)} as i
    ),
    known as (
      insert into node_allocations (node_id) select distinct "nodeId" from wanted
      on conflict on constraint node_allocations_pkey do nothing
    )
    insert into executions (
      id, job, version, index, node_id, desired, generation, spec_digest, millicores, memory_bytes, disk_bytes, taken,
      attempt, restarts, state, reason, message
    )
    select w.id, w.job, 0, 0, w."nodeId", 'RUN', 0, decode(w.digest, 'hex'), 0, 0, 0, false, 0, 0, 'ORPHANED',
      'UNKNOWN_TO_RECORD', w.message
    from wanted as w
    on conflict on constraint executions_pkey do nothing`.execute(tx);
}

async function saveFindings(tx: Tx, findings: readonly JobFinding[]): Promise<readonly NewEvent[]> {
  if (findings.length === 0) return [];
  const items = findings.map(({ change: told, ...finding }) => ({
    ...finding,
    ...(told === null
      ? {}
      : {
          edition: told.edition,
          state: told.state,
          halted: told.updateHalted,
          haltMessage: told.updateMessage,
        }),
  }));
  const columns = sql`
    name text, wanted integer, waiting integer, message text, edition integer, state text, halted boolean,
    "haltMessage" text`;
  const { rows } = await sql<{ readonly name: string }>`
    update jobs as j set
      wanted = w.wanted,
      waiting = w.waiting,
      message = case when j.state = 'STOPPED' then j.message else w.message end,
      state = case when w.edition = j.edition then w.state else j.state end,
      update_halted = case when w.edition = j.edition then w.halted else j.update_halted end,
      update_message = case when w.edition = j.edition then w."haltMessage" else j.update_message end,
      updated_at = case when w.edition = j.edition then now() else j.updated_at end
    from ${rowsFrom(items, columns)} as w
    where j.name = w.name
    returning case when w.edition = j.edition then j.name end as name`.execute(tx);
  const changed = new Set(rows.map(({ name }) => name));
  return findings.flatMap(({ name, change: told }) => (told !== null && changed.has(name) ? [told.event] : []));
}
