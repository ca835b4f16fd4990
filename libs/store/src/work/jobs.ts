import { type JobState, type JobType, type JobVersionHead, type Json, MOST_JOB_VERSIONS } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { JobsTable, JobVersionsTable } from "./work-tables.ts";

/** A job as the record has it. */
export interface StoredJob {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  /** Executions wanted of a batch job or service. */
  readonly count: number;
  /** The newest version, as protobuf JSON, with `count` as it is now. */
  readonly spec: Json;
  /** SHA-256 of what nodes are told to run. */
  readonly specDigest: Buffer;
  /** Who submitted the newest version. */
  readonly actor: string;
  /** When it was submitted last, or started again. */
  readonly submittedAtMs: number;
  /** Counts its runs, from 1. */
  readonly run: number;
  readonly state: JobState;
  readonly message: string;
  /** Whether an ops job has been placed on all nodes that matched it. */
  readonly placed: boolean;
  /** Why the update to the newest version halted; null while it continues, or there is none. */
  readonly halted: string | null;
  /** The newest version of which all that was placed became ready; null for none. */
  readonly readyVersion: number | null;
  /** Earlier versions with the specification of the newest one, which reverts to them. */
  readonly sameVersions: readonly number[];
  /** The version that the newest one undid automatically; null where somebody submitted it. */
  readonly undone: number | null;
  /** Rises with each change by JobService: what the leader decides is compared with it. */
  readonly edition: number;
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A version of a job that is submitted. */
export interface NewJobVersion {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  readonly count: number;
  readonly spec: Json;
  readonly specDigest: Uint8Array;
  readonly actor: string;
  readonly reason: string;
  /** Whether it begins a new run: executions of earlier ones no longer count. False when absent. */
  readonly isNewRun?: boolean;
  /** What each execution asks for; 0 when absent. */
  readonly millicores?: number;
  /** Whether it names the one node that runs it; false when absent. */
  readonly isOneNode?: boolean;
  /** Of a version that reverts to an earlier one; absent for one that was submitted. */
  readonly revert?: {
    /** The version that first had the specification. */
    readonly origin: number;
    /** All versions before it that have the specification. */
    readonly sameVersions: readonly number[];
    /** The version that is undone automatically; null where somebody reverts. */
    readonly undone: number | null;
  };
}

/** A version of a job that is kept. */
export interface JobVersionRecord {
  readonly version: number;
  readonly spec: Json;
  /** SHA-256 of what nodes are told to run. */
  readonly specDigest: Buffer;
  readonly actor: string;
  readonly reason: string;
  readonly createdAtMs: number;
  /** When all that was placed of it became ready; null for never. */
  readonly readyAtMs: number | null;
  /** The version that first had the specification; its own number where it was submitted. */
  readonly origin: number;
}

/** One job with its row locked until the transaction ends; null when there is none. */
export async function lockJob(tx: Tx, name: string): Promise<StoredJob | null> {
  const row = await tx.selectFrom("jobs").selectAll().where("name", "=", name).forUpdate().executeTakeFirst();
  return row === undefined ? null : toStoredJob(row);
}

/**
 * Hold on to a name until the transaction ends, whether there is such a job or not: two who submit a new job at once do
 * so one after the other.
 */
export async function lockJobName(tx: Tx, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 7193))`.execute(tx);
}

/**
 * Hold on to names, and lock those of the jobs that are there, until the transaction ends: in one order, so that none
 * of those who lock several waits for another that waits for it.
 */
export async function lockJobs(tx: Tx, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  for (const name of [...names].sort()) await lockJobName(tx, name);
  await lockJobRows(tx, names);
}

/** Lock the rows of jobs that are there, in the order of their names. */
export async function lockJobRows(tx: Tx, names: readonly string[]): Promise<void> {
  await sql`select from jobs where name = any(${names}::text[]) order by name for update`.execute(tx);
}

/** One job; null when there is none. */
export async function getJob(db: Db, name: string): Promise<StoredJob | null> {
  const row = await db.selectFrom("jobs").selectAll().where("name", "=", name).executeTakeFirst();
  return row === undefined ? null : toStoredJob(row);
}

/** How many jobs there are. */
export async function countJobs(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom("jobs")
    .select((eb) => eb.fn.countAll<bigint>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Which jobs to read. */
export interface JobFilter {
  readonly states?: readonly JobState[];
  readonly types?: readonly JobType[];
}

/** Jobs by name, after one. */
export async function readJobs(
  db: Db,
  { after, limit, filter = {} }: { readonly after: string; readonly limit: number; readonly filter?: JobFilter },
): Promise<readonly StoredJob[]> {
  const { states, types } = filter;
  let query = db.selectFrom("jobs").selectAll().where("name", ">", after).orderBy("name").limit(limit);
  if (states !== undefined) query = query.where("state", "in", states);
  if (types !== undefined) query = query.where("type", "in", types);
  return (await query.execute()).map(toStoredJob);
}

/** These jobs; those that are not there are left out. */
export async function getJobs(db: Db, names: readonly string[]): Promise<readonly StoredJob[]> {
  if (names.length === 0) return [];
  const rows = await db.selectFrom("jobs").selectAll().where("name", "in", names).orderBy("name").execute();
  return rows.map(toStoredJob);
}

/**
 * Store a version as the newest of its job, which is new or locked. Versions beyond MOST_JOB_VERSIONS are forgotten,
 * except the last one that became ready.
 */
export async function saveJobVersion(tx: Tx, version: NewJobVersion): Promise<StoredJob> {
  const { name, type, count, actor, reason, isNewRun = false, millicores = 0, isOneNode = false, revert } = version;
  const same = revert?.sameVersions ?? [];
  const spec = JSON.stringify(version.spec);
  const columns = {
    ...{ type, version: version.version, count, spec, actor, millicores, one_node: isOneNode },
    spec_digest: Buffer.from(version.specDigest),
    same_versions: same,
    undone: revert?.undone ?? null,
  };
  const row = await tx
    .insertInto("jobs")
    .values({ name, ...columns })
    .onConflict((conflict) =>
      conflict.constraint("jobs_pkey").doUpdateSet({
        ...columns,
        ...{ state: "ACTIVE", message: "", halted: null, placed: false },
        ...(isNewRun ? { run: sql<number>`jobs.run + 1` } : {}),
        edition: sql<number>`jobs.edition + 1`,
        submitted_at: sql<Date>`now()`,
        updated_at: sql<Date>`now()`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  await tx
    .insertInto("job_versions")
    .values({
      ...{ job: name, version: version.version, spec, spec_digest: columns.spec_digest, actor, reason },
      origin: revert?.origin ?? null,
    })
    .execute();
  await sql`
    delete from job_versions
    where job = ${name} and version <= ${version.version - MOST_JOB_VERSIONS}
      and version is distinct from ${row.ready_version}`.execute(tx);
  return toStoredJob(row);
}

/** What operators change of a job without a new version. */
export interface JobEdit {
  readonly count?: number;
  /** With its count. */
  readonly spec?: Json;
  /** Whether a new run begins; false when absent. */
  readonly isNewRun?: boolean;
  readonly state?: JobState;
}

/** Change a job that is locked. */
export async function saveJobEdit(tx: Tx, name: string, edit: JobEdit): Promise<StoredJob> {
  const { count, spec, isNewRun = false, state } = edit;
  const row = await tx
    .updateTable("jobs")
    .set({
      ...(count === undefined ? {} : { count }),
      ...(spec === undefined ? {} : { spec: JSON.stringify(spec) }),
      ...(isNewRun ? { run: sql<number>`run + 1`, halted: null, placed: false, submitted_at: sql<Date>`now()` } : {}),
      ...(state === undefined ? {} : { state, message: "" }),
      edition: sql<number>`edition + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where("name", "=", name)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toStoredJob(row);
}

/** Change why the update of a job that is locked halted. */
export async function saveHalted(tx: Tx, name: string, halted: string): Promise<StoredJob> {
  const query = tx.updateTable("jobs").set({ halted, updated_at: sql<Date>`now()` }).where("name", "=", name);
  return toStoredJob(await query.returningAll().executeTakeFirstOrThrow());
}

/**
 * How many executions of a job have not ended, or may still run on their nodes: a rejected node may be approved again,
 * and what it runs must then be stopped.
 */
export async function countOpenExecutions(db: Db, job: string): Promise<number> {
  const { rows } = await sql<{ readonly count: bigint }>`
    select count(*) as count
    from executions as e
    left join execution_observations as o on o.execution_id = e.id
    where e.job = ${job} and (
      e.holds or e.ended_at is null
      or exists (select from nodes as n where n.id = e.node_id)
        and coalesce(o.observed, 'ABSENT') <> 'ENDED' and coalesce(o.missing, 0) < 2
        and (e.desired = 'STOP' or o.observed in ('STARTING', 'RUNNING', 'READY'))
    )`.execute(db);
  return Number(rows[0]?.count ?? 0n);
}

/** Delete a job that is locked, with its versions and its executions. */
export async function deleteJob(tx: Tx, name: string): Promise<void> {
  await sql`
    with gone as (delete from executions where job = ${name} returning id)
    delete from execution_observations as o using gone where o.execution_id = gone.id`.execute(tx);
  await tx.deleteFrom("jobs").where("name", "=", name).execute();
}

/** Versions of a job, the newest first, below one; null for from the newest on. */
export async function readJobVersions(
  db: Db,
  { job, below, limit }: { readonly job: string; readonly below: number | null; readonly limit: number },
): Promise<readonly JobVersionRecord[]> {
  let query = db.selectFrom("job_versions").selectAll().where("job", "=", job).orderBy("version", "desc").limit(limit);
  if (below !== null) query = query.where("version", "<", below);
  return (await query.execute()).map(toJobVersion);
}

/** One version of a job; null for one that is not kept. */
export async function getJobVersion(db: Db, job: string, version: number): Promise<JobVersionRecord | null> {
  const query = db.selectFrom("job_versions").selectAll().where("job", "=", job).where("version", "=", version);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : toJobVersion(row);
}

/** Which versions of a job are kept, without their specifications. */
export async function readJobVersionHeads(db: Db, job: string): Promise<readonly JobVersionHead[]> {
  const query = db.selectFrom("job_versions").select(["version", "ready_at", "origin"]).where("job", "=", job);
  const rows = await query.execute();
  return rows.map(({ version, ready_at: readyAt, origin }) => {
    return { version, wasReady: readyAt !== null, origin: origin ?? version };
  });
}

function toJobVersion(row: Selectable<JobVersionsTable>): JobVersionRecord {
  const { version, spec, actor, reason } = row;
  return {
    ...{ version, spec, actor, reason, specDigest: row.spec_digest, origin: row.origin ?? version },
    createdAtMs: row.created_at.getTime(),
    readyAtMs: row.ready_at?.getTime() ?? null,
  };
}

function toStoredJob(row: Selectable<JobsTable>): StoredJob {
  const createdAtMs = row.created_at.getTime();
  return {
    name: row.name,
    type: row.type,
    version: row.version,
    count: row.count,
    spec: row.spec,
    specDigest: row.spec_digest,
    actor: row.actor,
    submittedAtMs: row.submitted_at.getTime(),
    run: row.run,
    state: row.state,
    message: row.message,
    placed: row.placed,
    halted: row.halted,
    readyVersion: row.ready_version,
    sameVersions: row.same_versions,
    undone: row.undone,
    edition: row.edition,
    etag: `${createdAtMs.toString(36)}-${row.edition}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
  };
}
