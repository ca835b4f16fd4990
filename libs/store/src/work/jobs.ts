import type { JobState, JobType, Json } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { JobsTable } from "./work-tables.ts";

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
  /** Why the update to the newest version stopped; null while it goes on, or there is none. */
  readonly halted: string | null;
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
}

/** What was submitted once. */
export interface JobVersionRecord {
  readonly version: number;
  readonly spec: Json;
  readonly actor: string;
  readonly reason: string;
  readonly createdAtMs: number;
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

/** Keep a version that was submitted as the newest of its job, which is new or locked. */
export async function saveJobVersion(tx: Tx, version: NewJobVersion): Promise<StoredJob> {
  const { name, type, count, actor, reason, isNewRun = false } = version;
  const spec = JSON.stringify(version.spec);
  const columns = {
    ...{ type, version: version.version, count, spec, actor },
    spec_digest: Buffer.from(version.specDigest),
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
    .values({ job: name, version: version.version, spec, spec_digest: columns.spec_digest, actor, reason })
    .execute();
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

/** Versions of a job, the newest first, below one; null for from the newest on. */
export async function readJobVersions(
  db: Db,
  { job, below, limit }: { readonly job: string; readonly below: number | null; readonly limit: number },
): Promise<readonly JobVersionRecord[]> {
  let query = db.selectFrom("job_versions").selectAll().where("job", "=", job).orderBy("version", "desc").limit(limit);
  if (below !== null) query = query.where("version", "<", below);
  const rows = await query.execute();
  return rows.map(({ version, spec, actor, reason, created_at: createdAt }) => ({
    ...{ version, spec, actor, reason },
    createdAtMs: createdAt.getTime(),
  }));
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
    edition: row.edition,
    etag: `${createdAtMs.toString(36)}-${row.edition}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
  };
}
