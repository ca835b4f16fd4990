import {
  type Execution,
  type ExecutionChange,
  type JobChange,
  type NewEvent,
  type Plan,
  schedulerActor,
} from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { ReservedStore, Tx } from "../database/store.ts";
import { holdAllowed } from "../sessions/reactions.ts";
import { WORK_CHANNEL } from "./changes.ts";
import { endDrains } from "./drain-progress.ts";
import { lockJobRows } from "./jobs.ts";
import { addOrphans, type Orphan, saveAdopted } from "./orphans.ts";
import { holdSchedulerLease } from "./scheduler-lease.ts";
import { type NodeGenerations, takeFromNodes } from "./take-from-nodes.ts";

/** A job as the leader knows it. */
export interface PlannedJob {
  readonly version: number;
  /** The digest of the job's execution spec. */
  readonly specDigest: Uint8Array;
  /** When the job was created. This distinguishes two jobs with the same name. */
  readonly createdAtMs: number;
}

/** A leader's decisions, to write in one transaction. */
export interface WorkCommit {
  /** The process that holds the scheduler's lease. */
  readonly instance: string;
  readonly plan: Pick<Plan, "executions" | "jobs" | "drains"> & Partial<Pick<Plan, "lostNodes">>;
  /** Returns the job of a placement. The stored job must still be equal to it. */
  readonly jobOf: (job: string) => PlannedJob;
  /** Returns the digest of the execution spec of a job's version. */
  readonly specDigestOf: (job: string, version: number) => Uint8Array;
  readonly events: readonly NewEvent[];
  /** Executions whose operator orders have been handled. */
  readonly endedOrders?: readonly string[];
  /** Running executions that the store did not know. Their jobs adopt them. */
  readonly adopted?: readonly Execution[];
  /**
   * Running executions that the store did not know, and that no job adopts. They are shown from now on, and hold no
   * resources.
   */
  readonly orphans?: readonly Orphan[];
}

/** The outcome of a commit. */
export type WorkCommitted =
  | { readonly outcome: "COMMITTED"; readonly revision: bigint }
  /** Another process holds the scheduler's lease. Nothing was written. */
  | { readonly outcome: "FENCED" }
  /**
   * The leader's memory is outdated, and nothing was written. The nodes listed here could not take their placements,
   * are no longer lost, or may just have reconnected. The jobs listed here have changed.
   */
  | { readonly outcome: "STALE"; readonly nodeIds: readonly string[]; readonly jobs: readonly string[] };

/** Write a leader's decisions, unless the leader has lost its lease. */
export async function commitWork(store: ReservedStore, commit: WorkCommit): Promise<WorkCommitted> {
  const { instance, plan, jobOf, specDigestOf, events, endedOrders = [], adopted = [], orphans = [] } = commit;
  try {
    const { revision } = await store.change(async (tx) => {
      if (!(await holdSchedulerLease(tx, instance))) throw new NotWritten({ outcome: "FENCED" });
      // Lock the nodes before any other row: only this step waits for locks of nodes, and operators lock several nodes
      // at the same time.
      const evaluated = plan.drains
        .filter(({ after }) => after.state !== "DRAINING")
        .map(({ before, after }) => ({ ...before, unconfirmed: after.state === "UNCONFIRMED" }));
      const drained = await endDrains(tx, evaluated, schedulerActor(instance));
      await holdPlacedJobs(tx, plan, jobOf);
      await saveJobs(tx, plan.jobs);
      await holdLosses(tx, plan.lostNodes ?? []);
      // Return resources first, because the same plan may allocate them again.
      await giveBack(tx, plan.executions);
      await countAgain(tx, [...foundAgain(plan.executions), ...adopted]);
      const places = await place(tx, plan.executions, specDigestOf);
      const changes = await saveChanges(tx, plan.executions);
      await endOrders(tx, endedOrders);
      await saveAdopted(tx, adopted);
      await addOrphans(tx, orphans);
      if (places || changes || adopted.length > 0) await sql`select pg_notify(${WORK_CHANNEL}, 'WANTED')`.execute(tx);
      return { result: null, events: [...events, ...drained] };
    });
    return { outcome: "COMMITTED", revision };
  } catch (error) {
    if (error instanceof NotWritten) return error.why;
    throw error;
  }
}

/** Rolls back the transaction of a commit, and carries its outcome. */
class NotWritten extends Error {
  readonly why: Exclude<WorkCommitted, { readonly outcome: "COMMITTED" }>;

  constructor(why: NotWritten["why"]) {
    super(why.outcome);
    this.why = why;
  }
}

/**
 * Check that the jobs of placements are as the leader knows them, and lock them until the transaction ends. A job may
 * have a newer version by now, or its name may belong to another job after a deletion.
 */
async function holdPlacedJobs(
  tx: Tx,
  { executions, jobs }: Pick<Plan, "executions" | "jobs">,
  jobOf: WorkCommit["jobOf"],
): Promise<void> {
  const runs = new Map(
    executions.flatMap(({ kind, after }) => (kind === "PLACED" ? [[after.job, after.run] as const] : [])),
  );
  if (runs.size === 0) return;
  // Lock all rows of jobs that this transaction needs, in the common order.
  const rows = await lockJobRows(tx, [...runs.keys(), ...jobs.map(({ after }) => after.name)]);
  const found = new Map(rows.map((row) => [row.name, row]));
  const stale = [...runs].flatMap(([name, run]) => {
    const { version, specDigest, createdAtMs } = jobOf(name);
    const row = found.get(name);
    const isSame =
      row?.state === "ACTIVE" &&
      row.run === run &&
      row.version === version &&
      row.created_at.getTime() === createdAtMs &&
      row.spec_digest.equals(specDigest);
    return isSame ? [] : [name];
  });
  if (stale.length > 0) throw new NotWritten({ outcome: "STALE", nodeIds: [], jobs: stale });
}

/**
 * Check that nodes are still lost. If a node has reconnected, its loss must have no consequences, so the commit is
 * STALE.
 */
async function holdLosses(tx: Tx, nodeIds: readonly string[]): Promise<void> {
  if (nodeIds.length === 0) return;
  const held = await holdAllowed(tx, nodeIds);
  const back = nodeIds.filter((nodeId) => !held.has(nodeId));
  if (back.length > 0) throw new NotWritten({ outcome: "STALE", nodeIds: back, jobs: [] });
}

async function place(
  tx: Tx,
  changes: readonly ExecutionChange[],
  specDigestOf: WorkCommit["specDigestOf"],
): Promise<boolean> {
  const placements = changes.flatMap(({ kind, after }) => (kind === "PLACED" ? [after] : []));
  if (placements.length === 0) return false;
  const taken = await takeFromNodes(tx, placements);
  const refused = new Set(placements.map(({ nodeId }) => nodeId).filter((nodeId) => !taken.has(nodeId)));
  if (refused.size > 0) throw new NotWritten({ outcome: "STALE", nodeIds: [...refused], jobs: [] });
  await insert(tx, placements, taken, specDigestOf);
  return true;
}

const PLACEMENT_COLUMNS = sql`
  id text, job text, version integer, run integer, index integer, "nodeId" text, generation bigint, digest text,
  ports jsonb, "gpuUuids" text[], millicores bigint, "memoryBytes" bigint, "diskBytes" bigint, previous text,
  attempt integer, "createdAtMs" bigint`;

async function insert(
  tx: Tx,
  placements: readonly Execution[],
  taken: NodeGenerations,
  specDigestOf: WorkCommit["specDigestOf"],
): Promise<void> {
  const specs = new SpecTexts(specDigestOf);
  const items = placements.map((placement) => toItem(placement, taken, specs));
  await sql`${PREPARED}
    insert into executions (
      id, job, version, run, index, node_id, desired, generation, spec_digest, ports, gpu_uuids, millicores,
      memory_bytes, disk_bytes, previous, attempt, created_at
    )
    select i.id, i.job, i.version, i.run, i.index, i."nodeId", 'RUN', i.generation, decode(i.digest, 'hex'), i.ports,
      i."gpuUuids", i.millicores, i."memoryBytes", i."diskBytes", i.previous, i.attempt,
      to_timestamp(i."createdAtMs" / 1000.0)
    from ${rowsFrom(items, PLACEMENT_COLUMNS)} as i`.execute(tx);
}

/**
 * Convert a placement to a row. The fields are written out, because a thousand rows are created at a time and spreading
 * objects costs several times as much.
 */
function toItem(placement: Execution, taken: NodeGenerations, specs: SpecTexts) {
  const { grant } = placement;
  return {
    id: placement.id,
    job: placement.job,
    version: placement.version,
    run: placement.run,
    index: placement.index,
    nodeId: placement.nodeId,
    generation: String(taken.get(placement.nodeId)),
    digest: specs.of(placement.job, placement.version),
    ports: grant.ports,
    gpuUuids: grant.gpuUuids,
    millicores: grant.millicores,
    memoryBytes: grant.memoryBytes,
    diskBytes: grant.diskBytes,
    previous: placement.previous,
    attempt: placement.attempt,
    createdAtMs: placement.createdAtMs,
  };
}

/** Spec digests in hexadecimal. Each digest is encoded only once. */
class SpecTexts {
  readonly #digestOf: WorkCommit["specDigestOf"];
  readonly #texts = new Map<string, string>();

  constructor(digestOf: WorkCommit["specDigestOf"]) {
    this.#digestOf = digestOf;
  }

  of(job: string, version: number): string {
    const key = `${version} ${job}`;
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = Buffer.from(this.#digestOf(job, version)).toString("hex");
    this.#texts.set(key, text);
    return text;
  }
}

async function giveBack(tx: Tx, changes: readonly ExecutionChange[]): Promise<void> {
  const ids = changes.flatMap(({ before, after }) => (before?.holds === true && !after.holds ? [after.id] : []));
  if (ids.length === 0) return;
  await sql`${PREPARED}
    with freed as (
      update executions set holds = false
      where id = any(${ids}) and holds
      returning node_id, millicores, memory_bytes, disk_bytes, gpu_uuids, ports
    ),
    sums as (
      select node_id, sum(millicores) as millicores, sum(memory_bytes) as memory_bytes, sum(disk_bytes) as disk_bytes,
        count(*) as executions, jsonb_agg(to_jsonb(gpu_uuids)) as gpu_uuids, jsonb_agg(ports) as ports
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
        select jsonb_array_elements_text(each) from jsonb_array_elements(s.gpu_uuids) as each
      ),
      ports = array(
        select unnest(a.ports)
        except
        select port.value::integer
        from jsonb_array_elements(s.ports) as each cross join lateral jsonb_each_text(each) as port
      )
    from sums as s
    where a.node_id = s.node_id`.execute(tx);
}

const GRANT_COLUMNS = sql`
  id text, millicores bigint, "memoryBytes" bigint, "diskBytes" bigint, ports jsonb, "gpuUuids" text[]`;

/**
 * Allocate the resources of executions that already run but hold nothing yet. This does not check whether the node has
 * enough free resources or can take work.
 */
async function countAgain(tx: Tx, executions: readonly Execution[]): Promise<void> {
  if (executions.length === 0) return;
  const items = executions.map(({ id, grant }) => ({ id, ...grant }));
  await sql`
    with held as (
      update executions as e set
        holds = true, millicores = w.millicores, memory_bytes = w."memoryBytes", disk_bytes = w."diskBytes",
        ports = w.ports, gpu_uuids = w."gpuUuids"
      from ${rowsFrom(items, GRANT_COLUMNS)} as w
      where e.id = w.id and not e.holds
      returning e.node_id, e.millicores, e.memory_bytes, e.disk_bytes, e.gpu_uuids, e.ports
    ),
    sums as (
      select node_id, sum(millicores) as millicores, sum(memory_bytes) as memory_bytes, sum(disk_bytes) as disk_bytes,
        count(*) as executions, jsonb_agg(to_jsonb(gpu_uuids)) as gpu_uuids, jsonb_agg(ports) as ports
      from held group by node_id
    )
    update node_allocations as a set
      millicores = a.millicores + s.millicores,
      memory_bytes = a.memory_bytes + s.memory_bytes,
      disk_bytes = a.disk_bytes + s.disk_bytes,
      executions = a.executions + s.executions,
      gpu_uuids = array(
        select unnest(a.gpu_uuids)
        union
        select jsonb_array_elements_text(each) from jsonb_array_elements(s.gpu_uuids) as each
      ),
      ports = array(
        select unnest(a.ports)
        union
        select port.value::integer
        from jsonb_array_elements(s.ports) as each cross join lateral jsonb_each_text(each) as port
      )
    from sums as s
    where a.node_id = s.node_id`.execute(tx);
}

/** Executions that have reappeared. They had given back their resources, because their node no longer reported them. */
function foundAgain(changes: readonly ExecutionChange[]): readonly Execution[] {
  return changes.flatMap(({ before, after }) => (before?.holds === false && after.holds ? [after] : []));
}

const CHANGE_COLUMNS = sql`
  id text, "nodeId" text, raises boolean, desired text, state text, reason text, message text, "replacedBy" text,
  "lostAt" timestamptz, "endedAt" timestamptz`;

/** Write changes to existing executions. Returns whether there were any. */
async function saveChanges(tx: Tx, changes: readonly ExecutionChange[]): Promise<boolean> {
  const items = changes.flatMap(({ before, after }) => {
    if (before === null) return [];
    const { id, nodeId, desired, state, reason, message, replacedBy, lostAtMs, endedAtMs } = after;
    const raises = before.desired !== desired;
    const [lostAt, endedAt] = [isoOf(lostAtMs), isoOf(endedAtMs)];
    return [{ id, nodeId, raises, desired, state, reason, message, replacedBy, lostAt, endedAt }];
  });
  if (items.length === 0) return false;
  await sql`${PREPARED}
    with wanted as materialized (select * from ${rowsFrom(items, CHANGE_COLUMNS)} as i),
    raised as (
      update node_allocations as a
      set generation = nextval('work_generations'), changed = pg_current_xact_id()
      where a.node_id in (select "nodeId" from wanted where raises)
      returning a.node_id, a.generation
    )
    update executions as e set
      desired = w.desired,
      generation = case when w.raises then coalesce(r.generation, e.generation) else e.generation end,
      -- An orphan stays one until it ends, even when it should stop.
      state = case when e.state = 'ORPHANED' and w.state = 'LIVE' then e.state else w.state end,
      reason = w.reason,
      message = w.message,
      replaced_by = w."replacedBy",
      lost_at = w."lostAt",
      ended_at = w."endedAt",
      stop_ordered_at = case when w.raises and w.desired = 'STOP' then now() else e.stop_ordered_at end,
      changed = pg_current_xact_id()
    from wanted as w
    left join raised as r on r.node_id = w."nodeId"
    where e.id = w.id`.execute(tx);
  return true;
}

async function saveJobs(tx: Tx, changes: readonly JobChange[]): Promise<void> {
  if (changes.length === 0) return;
  const items = changes.map(({ before, after }) => ({
    ...{ name: after.name, state: after.state, message: after.message, placed: after.placed, halted: after.halted },
    ...{ readyVersion: after.readyVersion, rolledOut: after.rolledOut, waitingNodes: after.waitingNodes },
    ...{ was: before.state, version: before.version, count: before.count, run: before.run },
  }));
  const columns = sql`
    name text, state text, message text, placed boolean, halted text, "readyVersion" integer, "rolledOut" boolean,
    "waitingNodes" integer, was text, version integer, count integer, run integer`;
  // Lock several rows first, in the common order. A single row needs no extra lock, because the statement that updates
  // it locks it.
  const names = items.map(({ name }) => name);
  if (names.length > 1) await lockJobRows(tx, names);
  const { rows } = await sql<{ readonly name: string }>`
    update jobs as j set
      state = w.state, message = w.message, placed = w.placed, halted = w.halted, ready_version = w."readyVersion",
      rolled_out = w."rolledOut", waiting_nodes = w."waitingNodes", updated_at = now()
    from ${rowsFrom(items, columns)} as w
    where j.name = w.name and j.state = w.was and j.version = w.version and j.count = w.count
      and j.run = w.run
    returning j.name`.execute(tx);
  const written = new Set(rows.map(({ name }) => name));
  const stale = names.filter((name) => !written.has(name));
  if (stale.length > 0) throw new NotWritten({ outcome: "STALE", nodeIds: [], jobs: stale });
  const ready = changes.flatMap(({ before, after: { name, readyVersion } }) => {
    return readyVersion === null || readyVersion === before.readyVersion ? [] : [{ name, version: readyVersion }];
  });
  if (ready.length === 0) return;
  await sql`
    update job_versions as v set ready_at = now()
    from ${rowsFrom(ready, sql`name text, version integer`)} as r
    where v.job = r.name and v.version = r.version and v.ready_at is null`.execute(tx);
}

async function endOrders(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await sql`
    update executions set order_kind = null, order_actor = null, order_message = null
    where id = any(${ids})`.execute(tx);
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
