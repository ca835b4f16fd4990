import type { JobFacts, JobType, Json } from "@rollcall/domain";
import { type Selectable, sql } from "kysely";
import type { Db, Tx } from "../database/store.ts";
import type { JobState, JobsTable } from "./work-tables.ts";

/** A job as the record has it. */
export interface JobRecord {
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
  /** How often it was restarted. */
  readonly restarts: number;
  readonly state: JobState;
  readonly message: string;
  /** Executions wanted, and how many of them have no node, as the leader last saw it. */
  readonly wanted: number;
  readonly waiting: number;
  readonly update: { readonly halted: boolean; readonly message: string };
  /** Rises with each change by JobService: what the leader decides is compared with it. */
  readonly edition: number;
  readonly etag: string;
  readonly createdAtMs: number;
  readonly versionAtMs: number;
  readonly updatedAtMs: number;
}

/** What events tell of a job. */
export function jobFactsOf({ state, version, count, restarts, update }: JobRecord): JobFacts {
  return { state, version, count, restarts, halted: update.halted };
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
export async function lockJob(tx: Tx, name: string): Promise<JobRecord | null> {
  const row = await tx.selectFrom("jobs").selectAll().where("name", "=", name).forUpdate().executeTakeFirst();
  return row === undefined ? null : toJobRecord(row);
}

/**
 * Hold on to a name until the transaction ends, whether there is such a job or not: two who submit a new job at once do
 * so one after the other.
 */
export async function lockJobName(tx: Tx, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 7193))`.execute(tx);
}

/** One job; null when there is none. */
export async function getJob(db: Db, name: string): Promise<JobRecord | null> {
  const row = await db.selectFrom("jobs").selectAll().where("name", "=", name).executeTakeFirst();
  return row === undefined ? null : toJobRecord(row);
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
): Promise<readonly JobRecord[]> {
  const { states, types } = filter;
  let query = db.selectFrom("jobs").selectAll().where("name", ">", after).orderBy("name").limit(limit);
  if (states !== undefined) query = query.where("state", "in", states);
  if (types !== undefined) query = query.where("type", "in", types);
  return (await query.execute()).map(toJobRecord);
}

/** These jobs; those that are not there are left out. */
export async function getJobs(db: Db, names: readonly string[]): Promise<readonly JobRecord[]> {
  if (names.length === 0) return [];
  const rows = await db.selectFrom("jobs").selectAll().where("name", "in", names).orderBy("name").execute();
  return rows.map(toJobRecord);
}

/** Keep a version that was submitted as the newest of its job, which is new or locked. */
export async function saveJobVersion(tx: Tx, version: NewJobVersion): Promise<JobRecord> {
  const { name, type, count, actor, reason } = version;
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
        ...{ state: "ACTIVE", message: "", update_halted: false, update_message: "" },
        edition: sql<number>`jobs.edition + 1`,
        version_at: sql<Date>`now()`,
        updated_at: sql<Date>`now()`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  await tx
    .insertInto("job_versions")
    .values({ job: name, version: version.version, spec, spec_digest: columns.spec_digest, actor, reason })
    .execute();
  return toJobRecord(row);
}

/** What operators change of a job without a new version. */
export interface JobEdit {
  readonly count?: number;
  /** With its count. */
  readonly spec?: Json;
  readonly restarts?: number;
  readonly state?: JobState;
}

/** Change a job that is locked. */
export async function saveJobEdit(tx: Tx, name: string, edit: JobEdit): Promise<JobRecord> {
  const { count, spec, restarts, state } = edit;
  const row = await tx
    .updateTable("jobs")
    .set({
      ...(count === undefined ? {} : { count }),
      ...(spec === undefined ? {} : { spec: JSON.stringify(spec) }),
      ...(restarts === undefined ? {} : { restarts, update_halted: false, update_message: "" }),
      ...(state === undefined ? {} : { state, message: "" }),
      edition: sql<number>`edition + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where("name", "=", name)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toJobRecord(row);
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

/** Versions of jobs by name and number; the leader reads those that executions still run. */
export async function getJobVersions(
  db: Db,
  wanted: readonly { readonly job: string; readonly version: number }[],
): Promise<readonly { readonly job: string; readonly version: number; readonly spec: Json }[]> {
  if (wanted.length === 0) return [];
  const { rows } = await sql<{ job: string; version: number; spec: Json }>`
    select v.job, v.version, v.spec
    from unnest(${wanted.map(({ job }) => job)}::text[], ${wanted.map(({ version }) => version)}::integer[])
      as w (job, version)
    join job_versions as v on v.job = w.job and v.version = w.version`.execute(db);
  return rows;
}

function toJobRecord(row: Selectable<JobsTable>): JobRecord {
  const createdAtMs = row.created_at.getTime();
  return {
    name: row.name,
    type: row.type,
    version: row.version,
    count: row.count,
    spec: row.spec,
    specDigest: row.spec_digest,
    actor: row.actor,
    restarts: row.restarts,
    state: row.state,
    message: row.message,
    wanted: row.wanted,
    waiting: row.waiting,
    update: { halted: row.update_halted, message: row.update_message },
    edition: row.edition,
    etag: `${createdAtMs.toString(36)}-${row.edition}`,
    createdAtMs,
    versionAtMs: row.version_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
  };
}
