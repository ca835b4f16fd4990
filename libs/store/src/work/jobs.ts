import { type JobState, type JobType, type JobVersionHead, type Json, MOST_JOB_VERSIONS } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { JobsTable, JobVersionsTable } from "../database/tables/work.ts";

/** A job as stored. */
export interface JobRow {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  /** How many executions a batch job or a service should have. */
  readonly count: number;
  /** The newest version's specification as protobuf JSON, with the current `count`. */
  readonly spec: Json;
  /** SHA-256 of the execution spec. */
  readonly specDigest: Buffer;
  /** The caller that submitted the newest version, who owns the job. */
  readonly actor: string;
  /** When the job was last submitted or started again. */
  readonly submittedAtMs: number;
  /** The number of the job's current run, from 1. */
  readonly run: number;
  readonly state: JobState;
  readonly message: string;
  /** Whether an ops job has been placed on all nodes that matched it. */
  readonly placed: boolean;
  /** Why the update to the newest version halted; null if it did not halt. */
  readonly halted: string | null;
  /** The newest version whose placed executions all became ready; null for none. */
  readonly readyVersion: number | null;
  /** Whether all executions that the newest version and run should have were ready for long enough. */
  readonly rolledOut: boolean;
  /** How many nodes should run an ops job or daemon and have no execution of it; 0 for other types. */
  readonly waitingNodes: number;
  /** Earlier versions with the same specification as the newest version, which reverts to that specification. */
  readonly sameVersions: readonly number[];
  /** The version that the newest version automatically undid; null if a person submitted the newest version. */
  readonly undone: number | null;
  /** Increases with each change by JobService, and is part of the etag. */
  readonly edition: number;
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A version of a job to store. */
export interface NewJobVersion {
  readonly name: string;
  readonly type: JobType;
  readonly version: number;
  readonly count: number;
  readonly spec: Json;
  readonly specDigest: Uint8Array;
  readonly actor: string;
  readonly reason: string;
  /** Whether the version starts a new run, in which executions of earlier runs no longer count. False when absent. */
  readonly isNewRun?: boolean;
  /** The millicores that each execution requests; 0 when absent. */
  readonly millicores?: number;
  /** Whether the version names the one node that runs it; false when absent. */
  readonly isOneNode?: boolean;
  /** For a version that reverts to an earlier one. Absent for a submitted version. */
  readonly revert?: {
    /** The version that first had this specification. */
    readonly origin: number;
    /** All earlier versions with this specification. */
    readonly sameVersions: readonly number[];
    /** The version that is automatically undone; null if a person reverts. */
    readonly undone: number | null;
  };
}

/** A stored version of a job. */
export interface JobVersionRow {
  readonly version: number;
  readonly spec: Json;
  /** SHA-256 of the execution spec. */
  readonly specDigest: Buffer;
  readonly actor: string;
  readonly reason: string;
  readonly createdAtMs: number;
  /** When all placed executions of this version first were ready; null for never. */
  readonly readyAtMs: number | null;
  /** The version that first had this specification; for a submitted version, its own number. */
  readonly origin: number;
}

/** Get one job and lock its row until the transaction ends; null when it does not exist. */
export async function lockJob(tx: Tx, name: string): Promise<JobRow | null> {
  const row = await tx.selectFrom("jobs").selectAll().where("name", "=", name).forUpdate().executeTakeFirst();
  return row === undefined ? null : toJobRow(row);
}

/**
 * Lock the name of a job until the transaction ends, whether the job exists or not. So concurrent submissions of a new
 * job run one after the other.
 */
export async function lockJobName(tx: Tx, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 7193))`.execute(tx);
}

/**
 * Lock the names of jobs, and the rows of those that exist, until the transaction ends. The order is fixed to avoid
 * deadlocks.
 */
export async function lockJobs(tx: Tx, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  for (const name of [...names].sort()) await lockJobName(tx, name);
  await lockJobRows(tx, names);
}

/** The columns of a job that determine what runs. */
export type LockedJobRow = Pick<
  Selectable<JobsTable>,
  "name" | "version" | "run" | "state" | "spec_digest" | "created_at"
>;

/** Lock the rows of the given jobs that exist, in order of their names. */
export async function lockJobRows(tx: Tx, names: readonly string[]): Promise<readonly LockedJobRow[]> {
  const { rows } = await sql<LockedJobRow>`
    select name, version, run, state, spec_digest, created_at
    from jobs where name = any(${names}::text[]) order by name for update`.execute(tx);
  return rows;
}

/** Get one job; null when it does not exist. */
export async function getJob(db: Db, name: string): Promise<JobRow | null> {
  const row = await db.selectFrom("jobs").selectAll().where("name", "=", name).executeTakeFirst();
  return row === undefined ? null : toJobRow(row);
}

/** Read the owners of jobs, without duplicates. */
export async function readJobOwners(db: Db, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const { rows } = await sql<{ actor: string }>`
    select distinct actor from jobs where name = any(${names}::text[])`.execute(db);
  return rows.map(({ actor }) => actor);
}

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

/** Read jobs in order of name, starting after the given name. */
export async function readJobs(
  db: Db,
  { after, limit, filter = {} }: { readonly after: string; readonly limit: number; readonly filter?: JobFilter },
): Promise<readonly JobRow[]> {
  const { states, types } = filter;
  let query = db.selectFrom("jobs").selectAll().where("name", ">", after).orderBy("name").limit(limit);
  if (states !== undefined) query = query.where("state", "in", states);
  if (types !== undefined) query = query.where("type", "in", types);
  return (await query.execute()).map(toJobRow);
}

/** Read active ops jobs and daemons that wait on at least one node, by name. */
export async function readJobsWaitingOnNodes(db: Db, limit: number): Promise<readonly JobRow[]> {
  const query = db.selectFrom("jobs").selectAll().where("waiting_nodes", ">", 0).where("state", "=", "ACTIVE");
  return (await query.orderBy("name").limit(limit).execute()).map(toJobRow);
}

/** Read these jobs. Missing jobs are left out. */
export async function getJobs(db: Db, names: readonly string[]): Promise<readonly JobRow[]> {
  if (names.length === 0) return [];
  const rows = await db.selectFrom("jobs").selectAll().where("name", "in", names).orderBy("name").execute();
  return rows.map(toJobRow);
}

/**
 * Store a version as the newest of its job. The job is new, or the caller has locked it. Versions beyond
 * MOST_JOB_VERSIONS are deleted, except the last version that became ready.
 */
export async function saveJobVersion(tx: Tx, version: NewJobVersion): Promise<JobRow> {
  const { name, type, count, actor, reason, isNewRun = false, millicores = 0, isOneNode = false, revert } = version;
  const same = revert?.sameVersions ?? [];
  const spec = JSON.stringify(version.spec);
  const columns = {
    ...{ type, version: version.version, count, spec, actor, millicores, one_node: isOneNode },
    spec_digest: Buffer.from(version.specDigest),
    same_versions: same,
    undone: revert?.undone ?? null,
    rolled_out: false,
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
  return toJobRow(row);
}

/** Fields of a job that operators change without a new version. */
export interface JobEdit {
  readonly count?: number;
  /** The specification, including the count. */
  readonly spec?: Json;
  /** Whether a new run starts; false when absent. */
  readonly isNewRun?: boolean;
  readonly state?: JobState;
}

/** Change a locked job. */
export async function saveJobEdit(tx: Tx, name: string, edit: JobEdit): Promise<JobRow> {
  const { count, spec, isNewRun = false, state } = edit;
  const row = await tx
    .updateTable("jobs")
    .set({
      ...(count === undefined ? {} : { count, rolled_out: false }),
      ...(spec === undefined ? {} : { spec: JSON.stringify(spec) }),
      ...(isNewRun ? { run: sql<number>`run + 1`, halted: null, placed: false, rolled_out: false } : {}),
      ...(isNewRun ? { submitted_at: sql<Date>`now()` } : {}),
      ...(state === undefined ? {} : { state, message: "" }),
      edition: sql<number>`edition + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where("name", "=", name)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toJobRow(row);
}

/** Record why the update of a locked job halted. */
export async function saveHalted(tx: Tx, name: string, halted: string): Promise<JobRow> {
  const query = tx.updateTable("jobs").set({ halted, updated_at: sql<Date>`now()` }).where("name", "=", name);
  return toJobRow(await query.returningAll().executeTakeFirstOrThrow());
}

/**
 * Count the executions of a job that have not ended, or may still run on their nodes. Executions on rejected nodes
 * count, because the nodes can be approved again, and the executions must then be stopped.
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

/** Delete a locked job, with its versions and its executions. */
export async function deleteJob(tx: Tx, name: string): Promise<void> {
  await sql`
    with gone as (delete from executions where job = ${name} returning id)
    delete from execution_observations as o using gone where o.execution_id = gone.id`.execute(tx);
  await tx.deleteFrom("jobs").where("name", "=", name).execute();
}

/** Read versions of a job that are below the given one, newest first; null starts with the newest. */
export async function readJobVersions(
  db: Db,
  { job, below, limit }: { readonly job: string; readonly below: number | null; readonly limit: number },
): Promise<readonly JobVersionRow[]> {
  let query = db.selectFrom("job_versions").selectAll().where("job", "=", job).orderBy("version", "desc").limit(limit);
  if (below !== null) query = query.where("version", "<", below);
  return (await query.execute()).map(toJobVersion);
}

/** Get one version of a job; null if it is not stored. */
export async function getJobVersion(db: Db, job: string, version: number): Promise<JobVersionRow | null> {
  const query = db.selectFrom("job_versions").selectAll().where("job", "=", job).where("version", "=", version);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : toJobVersion(row);
}

/** Read the stored versions of a job, without their specifications. */
export async function readJobVersionHeads(db: Db, job: string): Promise<readonly JobVersionHead[]> {
  const query = db.selectFrom("job_versions").select(["version", "ready_at", "origin"]).where("job", "=", job);
  const rows = await query.execute();
  return rows.map(({ version, ready_at: readyAt, origin }) => {
    return { version, wasReady: readyAt !== null, origin: origin ?? version };
  });
}

function toJobVersion(row: Selectable<JobVersionsTable>): JobVersionRow {
  const { version, spec, actor, reason } = row;
  return {
    ...{ version, spec, actor, reason, specDigest: row.spec_digest, origin: row.origin ?? version },
    createdAtMs: row.created_at.getTime(),
    readyAtMs: row.ready_at?.getTime() ?? null,
  };
}

function toJobRow(row: Selectable<JobsTable>): JobRow {
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
    rolledOut: row.rolled_out,
    waitingNodes: row.waiting_nodes,
    sameVersions: row.same_versions,
    undone: row.undone,
    edition: row.edition,
    etag: `${createdAtMs.toString(36)}-${row.edition}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
  };
}
