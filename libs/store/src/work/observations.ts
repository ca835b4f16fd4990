import { boundUnknown, type EndReason, type Observed } from "@rollcall/domain";
import { sql } from "kysely";
import { inRounds, rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { Db, LaneStore, Tx } from "../database/store.ts";
import { type ChangePosition, type Changes, changedSince, WORK_CHANNEL } from "./changes.ts";

/** A node's report about one execution. */
export interface ReportedExecution {
  readonly id: string;
  readonly observed: Observed;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly end: EndReason | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly message: string;
  /** The job that the node names, used if the store does not know the execution. */
  readonly job: string;
  readonly specDigest: Uint8Array | null;
  /** The ports that the execution uses; absent for none. */
  readonly ports?: Readonly<Record<string, number>>;
  readonly gpuUuids?: readonly string[];
}

/** A node's report, with all its parts combined. */
export interface NodeReport {
  readonly nodeId: string;
  /** The epoch of the session that sent the report. */
  readonly epoch: number;
  /** The report's number, which increases within a session. */
  readonly number: number;
  /** Whether the report names every execution that the node has. */
  readonly whole: boolean;
  readonly executions: readonly ReportedExecution[];
}

/** What could not be saved. */
export interface SavedReports {
  /** Nodes with more unknown executions than the limits allow to record. They must report again later. */
  readonly cutNodeIds: readonly string[];
}

/**
 * Save nodes' reports about their executions, in one transaction.
 *
 * A report changes nothing if its session is outdated, if it is older than the stored report, or if it is about an
 * execution of another node. An end is final, unless a newer report says that the execution is running. In that case
 * the process exists, whatever was reported before: two agents with one identity each report the other's executions as
 * gone.
 *
 * For each execution, the store counts how many consecutive complete reports lack it. The number of unknown executions
 * is limited, see boundUnknown(). An unknown execution that has ended is not recorded.
 */
export async function saveObservations(store: LaneStore, reports: readonly NodeReport[]): Promise<SavedReports> {
  if (reports.length === 0) return { cutNodeIds: [] };
  return store.transaction(async (tx) => {
    const cut = new Set<string>();
    for (const round of inRounds(reports, ({ nodeId }) => nodeId)) {
      const unknown = await saveReported(tx, round);
      for (const nodeId of await saveUnknown(tx, unknown)) cut.add(nodeId);
      await countMissing(
        tx,
        round.filter(({ whole }) => whole),
      );
    }
    await sql`select pg_notify(${WORK_CHANNEL}, 'OBSERVED')`.execute(tx);
    return { cutNodeIds: [...cut] };
  });
}

const REPORTED_COLUMNS = sql`
  id text, "nodeId" text, epoch bigint, number bigint, observed text, "startedAt" timestamptz, "endedAt" timestamptz,
  "end" text, "exitCode" integer, signal text, message text, job text, digest text, ports jsonb, "gpuUuids" text[]`;

const WRITTEN_COLUMNS = sql`
  execution_id, node_id, epoch, report, observed, started_at, ended_at, end_reason, exit_code, signal, message,
  job, spec_digest, ports, gpu_uuids, ready_at`;

const WRITTEN_VALUES = sql`
  i.id, i."nodeId", i.epoch, i.number, i.observed, i."startedAt", i."endedAt", i."end",
  i."exitCode", i.signal, i.message, i.job, decode(i.digest, 'hex'), i.ports, i."gpuUuids",
  case i.observed when 'READY' then now() end`;

/**
 * Save reports about executions that the store knows. Returns the reports about executions that the store does not know
 * and that have not ended.
 */
async function saveReported(tx: Tx, reports: readonly NodeReport[]): Promise<readonly ReportedItem[]> {
  const items = reports.flatMap(({ nodeId, epoch, number, executions }) =>
    executions.map((execution) => itemOf({ nodeId, epoch, number }, execution)),
  );
  if (items.length === 0) return [];
  const { rows } = await sql<{ readonly id: string; readonly nodeId: string }>`${PREPARED}
    with items as materialized (
      select distinct on (i.id) i.*, e.id is not null or known.execution_id is not null as "isKnown"
      from ${rowsFrom(items, REPORTED_COLUMNS)} as i
      join node_sessions as s on s.node_id = i."nodeId" and s.epoch = i.epoch
      left join executions as e on e.id = i.id
      left join execution_observations as known on known.execution_id = i.id
      where e.id is null or e.node_id = i."nodeId"
      order by i.id
    ),
    written as (
      insert into execution_observations as o (${WRITTEN_COLUMNS})
      select ${WRITTEN_VALUES} from items as i where i."isKnown" order by i.id
      on conflict on constraint execution_observations_pkey do update set
        epoch = excluded.epoch, report = excluded.report, observed = excluded.observed,
        started_at = excluded.started_at, ended_at = excluded.ended_at, end_reason = excluded.end_reason,
        exit_code = excluded.exit_code, signal = excluded.signal, message = excluded.message, job = excluded.job,
        spec_digest = excluded.spec_digest, ports = excluded.ports, gpu_uuids = excluded.gpu_uuids, missing = 0,
        ready_at = case
          when excluded.observed = 'READY' and o.observed = 'READY' then o.ready_at
          else excluded.ready_at
        end,
        observed_at = now(), changed = pg_current_xact_id()
      where o.node_id = excluded.node_id
        and (o.epoch, o.report) < (excluded.epoch, excluded.report)
        and (o.observed <> 'ENDED' or excluded.observed in ('STARTING', 'RUNNING', 'READY'))
        and (
          (o.observed, o.missing, o.message) is distinct from (excluded.observed, 0, excluded.message)
          or o.started_at is distinct from excluded.started_at
        )
    )
    select i.id, i."nodeId" from items as i where not i."isKnown" and i.observed <> 'ENDED' order by i.id`.execute(tx);
  if (rows.length === 0) return [];
  const byKey = new Map(items.map((item) => [`${item.nodeId} ${item.id}`, item]));
  return rows.flatMap(({ id, nodeId }) => byKey.get(`${nodeId} ${id}`) ?? []);
}

/** Save unknown executions within the limits. Returns the nodes that have more. */
async function saveUnknown(tx: Tx, unknown: readonly ReportedItem[]): Promise<readonly string[]> {
  if (unknown.length === 0) return [];
  // Run only one of these transactions at a time: concurrent ones could exceed the limits together.
  await sql`select pg_advisory_xact_lock(hashtextextended('unknown executions', 7194))`.execute(tx);
  const nodeIds = [...new Set(unknown.map(({ nodeId }) => nodeId))];
  const { rows } = await sql<{ readonly nodeId: string; readonly count: number }>`
    select n.id as "nodeId", count(o.execution_id)::integer as count
    from nodes as n
    left join execution_observations as o on o.node_id = n.id and o.unknown
      and (o.observed <> 'ENDED' and o.missing < 2 or o.observed_at > now() - interval '1 hour')
    where n.membership = 'APPROVED'
      and (n.id = any(${nodeIds}) or n.id in (select x.node_id from execution_observations as x where x.unknown))
    group by n.id
    union all
    -- Count those of deleted nodes for an hour. Otherwise a machine could report more under each new name.
    select '', count(*)::integer from execution_observations as o
    where o.unknown and o.observed_at > now() - interval '1 hour'
      and not exists (select from nodes as n where n.id = o.node_id)`.execute(tx);
  const { recorded, cutNodeIds } = boundUnknown(unknown, {
    ofNodes: new Map(rows.map(({ nodeId, count }) => [nodeId, count])),
    total: rows.reduce((sum, { count }) => sum + count, 0),
  });
  if (recorded.length > 0) {
    await sql`
      insert into execution_observations (${WRITTEN_COLUMNS}, unknown)
      select ${WRITTEN_VALUES}, true from ${rowsFrom(recorded, REPORTED_COLUMNS)} as i order by i.id
      on conflict on constraint execution_observations_pkey do nothing`.execute(tx);
  }
  return cutNodeIds;
}

type ReportedItem = ReturnType<typeof itemOf>;

function itemOf(
  session: { readonly nodeId: string; readonly epoch: number; readonly number: number },
  { startedAtMs, endedAtMs, specDigest, ports = {}, gpuUuids = [], ...execution }: ReportedExecution,
) {
  return {
    ...{ ...execution, ports, gpuUuids },
    ...session,
    startedAt: isoOf(startedAtMs),
    endedAt: isoOf(endedAtMs),
    digest: specDigest === null ? null : Buffer.from(specDigest).toString("hex"),
  };
}

/**
 * Count, for each execution that a complete report lacks, how many consecutive reports lacked it. An execution that was
 * never reported counts only if it should stop, because otherwise it may still be on its way to the node.
 */
async function countMissing(tx: Tx, reports: readonly NodeReport[]): Promise<void> {
  if (reports.length === 0) return;
  const items = reports.map(({ nodeId, epoch, number, executions }) => ({
    ...{ nodeId, epoch, number },
    ids: executions.map(({ id }) => id),
  }));
  await sql`${PREPARED}
    insert into execution_observations as o (execution_id, node_id, epoch, report, observed, missing, job)
    select e.id, e.node_id, i.epoch, i.number, 'ABSENT', 1, e.job
    from ${rowsFrom(items, sql`"nodeId" text, epoch bigint, number bigint, ids text[]`)} as i
    join node_sessions as s on s.node_id = i."nodeId" and s.epoch = i.epoch
    join executions as e on e.node_id = i."nodeId"
    left join execution_observations as known on known.execution_id = e.id
    where (e.holds or e.state in ('LIVE', 'LOST', 'ORPHANED') or e.desired = 'STOP')
      and not (e.id = any(i.ids))
      and (known.execution_id is not null or e.desired = 'STOP')
      and known.observed is distinct from 'ENDED'
    on conflict on constraint execution_observations_pkey do update set
      epoch = excluded.epoch, report = excluded.report, missing = o.missing + 1, ready_at = null,
      observed_at = now(), changed = pg_current_xact_id()
    where o.node_id = excluded.node_id
      and (o.epoch, o.report) < (excluded.epoch, excluded.report)
      and o.observed <> 'ENDED'`.execute(tx);
}

/** A node's report about an execution that the store does not know. */
export interface UnknownExecution {
  readonly id: string;
  readonly nodeId: string;
  readonly job: string;
  readonly specDigest: Buffer | null;
  readonly observed: Observed;
  readonly ports: Readonly<Record<string, number>>;
  readonly gpuUuids: readonly string[];
}

/**
 * Read executions that nodes run and the store does not know, in order of id, starting after the given id. With a
 * position, read only those that were reported since; with null, read all of them.
 */
export async function readUnknownExecutions(
  db: Db,
  options: { readonly position: ChangePosition | null; readonly after: string; readonly limit: number },
): Promise<readonly UnknownExecution[]> {
  const { position, after, limit } = options;
  const { rows } = await sql<UnknownExecution>`
    select o.execution_id as id, o.node_id as "nodeId", o.job, o.spec_digest as "specDigest", o.observed,
      o.ports, o.gpu_uuids as "gpuUuids"
    from execution_observations as o
    where ${position === null ? sql<boolean>`true` : changedSince("o", position)}
      and o.execution_id > ${after} and o.observed in ('STARTING', 'RUNNING', 'READY')
      and not exists (select from executions as e where e.id = o.execution_id)
      -- A deleted node sends no more reports.
      and exists (select from nodes as n where n.id = o.node_id)
    order by o.execution_id
    limit ${limit}`.execute(db);
  return rows;
}

/**
 * Find executions that hold nothing and whose reports the leader has yet to process, in order of id, starting after the
 * given id. These are executions that run although their node should forget them, executions that have stopped as
 * ordered, and orphans that have ended.
 */
export async function readUnsettledIds(
  db: Db,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly id: string }>`
    select e.id
    from executions as e
    join execution_observations as o on o.execution_id = e.id
    where e.id > ${after} and not e.holds and e.state not in ('LIVE', 'LOST')
      and case
        when o.observed = 'ENDED' or o.missing > 1 then e.state = 'ORPHANED' or e.desired = 'STOP'
        else o.observed in ('STARTING', 'RUNNING', 'READY') and e.state <> 'ORPHANED' and e.desired = 'FORGET'
      end
    order by e.id
    limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/**
 * Read the executions that were reported on since a position, in order of id, starting after the given id. An execution
 * can appear twice.
 */
export async function readObservedIds(
  db: Db,
  { position, after, limit }: { readonly position: ChangePosition; readonly after: string; readonly limit: number },
): Promise<Changes<string>> {
  const { rows } = await sql<{ readonly id: string | null; readonly position: string }>`
    select now.position, c.id
    from (select pg_snapshot_xmin(pg_current_snapshot())::text as position) as now
    left join lateral (
      select o.execution_id as id
      from execution_observations as o
      where ${changedSince("o", position)} and o.execution_id > ${after}
      order by o.execution_id
      limit ${limit}
    ) as c on true`.execute(db);
  return {
    items: rows.flatMap(({ id }) => id ?? []),
    position: rows[0]?.position ?? position,
  };
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
