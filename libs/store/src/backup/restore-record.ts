import { once } from "node:events";
import type { AuditHead, AuditProblem } from "@rollcall/domain";
import { type Kysely, sql } from "kysely";
import pg from "pg";
import { type CopyStreamQuery, from as copyFrom } from "pg-copy-streams";
import { AUDIT_START, verifyAudit } from "../access/verify-audit.ts";
import { readOrigin } from "../database/cluster.ts";
import { MIGRATIONS } from "../database/migrations/index.ts";
import type { Database } from "../database/schema.ts";
import { ArchiveError, damaged } from "./archive-frames.ts";
import type { ArchivedFile, ArchivedTable, ArchiveManifest, TableSum } from "./archive-manifest.ts";
import { type ArchiveSummary, readArchive } from "./read-archive.ts";
import { readObjects, readTables } from "./record-schema.ts";
import { inRecordSession, type RecordSession } from "./record-session.ts";

/** What to restore, and where to. */
export interface RestoreOptions {
  readonly url: string;
  readonly path: string;
  readonly passphrase: string | null;
  /** What verifyArchive() found in it. */
  readonly summary: ArchiveSummary;
  /** Whether a record that is there is removed, in the same transaction. */
  readonly replace: boolean;
  /** Whether an audit log whose chain is broken is restored all the same. */
  readonly acceptBrokenAudit: boolean;
  /** Told of each table that is restored. */
  readonly onTable: (sum: TableSum) => void;
  readonly signal: AbortSignal;
}

/** What was restored. */
export interface RestoreReport extends ArchiveSummary {
  /** The id of the log from now on. */
  readonly newLogId: string;
  /** What is wrong with the chain of the audit log; null when it is whole. */
  readonly auditProblem: AuditProblem | null;
  /** To be written into the data directory, where there is one. */
  readonly fileContents: readonly ArchivedFile[];
}

/**
 * Bring an archive that was verified into a database, whole or not at all: everything is one transaction, and its
 * checksums are compared again on the way. The log gets another id, so that no watcher resumes in a history that is no
 * more.
 *
 * @throws ArchiveError when the archive is damaged or of a newer release, the database is not empty or in use, or the
 *   audit log is broken.
 */
export async function restoreRecord(options: RestoreOptions): Promise<RestoreReport> {
  const { url, summary } = options;
  refuseUnknownMigrations(summary.manifest);
  options.signal.throwIfAborted();
  return inRecordSession({ url, applicationName: "rollcall restore", mode: "write" }, async (session) => {
    const { db } = session;
    await refuseIfInUse(db);
    await makeRoom(db, options.replace);
    await createSchema(db, summary.manifest);
    const fileContents = await copyIn(session, options);
    await setSequences(db, summary.manifest);
    await migrateFurther(db, summary.manifest);
    const newLogId = await renewLog(db);
    const auditProblem = await judgeAudit(db as Kysely<Database>, options.signal);
    if (auditProblem !== null && !options.acceptBrokenAudit) {
      throw new ArchiveError(
        `the audit log in the archive is broken at entry ${auditProblem.sequence}: ${auditProblem.message}; ` +
          "--accept-broken-audit restores it as it is",
      );
    }
    await sql`analyze`.execute(db);
    options.signal.throwIfAborted();
    await session.commit();
    return { ...summary, newLogId, auditProblem, fileContents };
  });
}

function refuseUnknownMigrations({ migrations, rollcall }: ArchiveManifest): void {
  const unknown = migrations.filter((name) => !Object.hasOwn(MIGRATIONS, name));
  if (unknown.length === 0) return;
  throw new ArchiveError(
    `the archive is of a newer release, ${rollcall} (${unknown.join(", ")}): restore it with that`,
  );
}

/** A process of the control plane would go on with what it has in memory of another record. */
async function refuseIfInUse(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select distinct application_name as name from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name like 'rollcall %'
      -- A pooler keeps connections whose process is gone. One that lives renews its lease every two seconds.
      and coalesce(state <> 'idle' or state_change > now() - interval '15 seconds', true)
    order by 1`.execute(db);
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(", ");
  throw new ArchiveError(`the database is in use (${names}): stop every process of the control plane first`);
}

async function makeRoom(db: Kysely<unknown>, replace: boolean): Promise<void> {
  const { tables, sequences, functions } = await readObjects(db);
  if (tables.length > 0 && !replace) {
    throw new ArchiveError(
      "the database holds a record already: --replace removes it and puts the archive in its place",
    );
  }
  // Without `cascade`: what another program has built on it is not removed, and named by Postgres.
  if (tables.length > 0) await sql.raw(`drop table ${tables.join(", ")}`).execute(db);
  // Those of identity columns went with their tables.
  for (const name of sequences) await sql.raw(`drop sequence if exists ${name}`).execute(db);
  for (const name of functions) await sql.raw(`drop function ${name}`).execute(db);
}

/** The schema as it was when the archive was written. */
async function createSchema(db: Kysely<unknown>, { migrations, tables }: ArchiveManifest): Promise<void> {
  // As the migrator makes them.
  await sql`create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(db);
  await sql`
    create table kysely_migration_lock (id varchar(255) primary key, is_locked integer not null default 0)
  `.execute(db);
  await applyMigrations(db, migrations);
  const made = await readTables(db);
  const names = (list: readonly ArchivedTable[]) => [...list.map(({ name }) => name)].sort().join(", ");
  if (names(made) !== names(tables)) throw damaged("its tables are not those of its migrations");
  // What migrations put in by themselves is in the archive as it was in the end.
  await sql`truncate ${sql.join(tables.map(({ name }) => sql.id(name)))}`.execute(db);
}

async function applyMigrations(db: Kysely<unknown>, names: readonly string[]): Promise<void> {
  for (const name of [...names].sort()) {
    await MIGRATIONS[name]?.up(db);
    await sql`
      insert into kysely_migration (name, timestamp) values (${name}, to_char(now(), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    `.execute(db);
  }
}

/** From the schema of an older release to this one's, with the data in it. */
function migrateFurther(db: Kysely<unknown>, { migrations }: ArchiveManifest): Promise<void> {
  return applyMigrations(
    db,
    Object.keys(MIGRATIONS).filter((name) => !migrations.includes(name)),
  );
}

async function copyIn({ client }: RecordSession, options: RestoreOptions): Promise<readonly ArchivedFile[]> {
  const files: ArchivedFile[] = [];
  const current: { copying: Copying | null } = { copying: null };
  for await (const part of readArchive(options.path, options.passphrase)) {
    options.signal.throwIfAborted();
    const { copying } = current;
    if (part.kind === "table") {
      current.copying = startCopy(client, part.table);
    } else if (part.kind === "data" && copying !== null) {
      if (copying.failure !== null) throw copying.failure;
      if (!copying.stream.write(part.bytes)) await once(copying.stream, "drain");
    } else if (part.kind === "table-end" && copying !== null) {
      await endCopy(copying, part.sum);
      options.onTable(part.sum);
    } else if (part.kind === "file") {
      files.push(part.file);
    }
  }
  return files;
}

/** A table that is being copied in. */
interface Copying {
  readonly stream: CopyStreamQuery;
  /** Why it ended early: it may say so while nothing waits for it, and says it once. */
  failure: unknown;
}

function startCopy(client: pg.Client, { name, columns }: ArchivedTable): Copying {
  const list = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
  const stream = client.query(copyFrom(`copy ${pg.escapeIdentifier(name)} (${list}) from stdin`));
  const copying: Copying = { stream, failure: null };
  stream.on("error", (error) => {
    copying.failure ??= error;
  });
  return copying;
}

async function endCopy(copying: Copying, sum: TableSum): Promise<void> {
  if (copying.failure !== null) throw copying.failure;
  const finished = once(copying.stream, "finish");
  copying.stream.end();
  await finished;
  const { rowCount } = copying.stream;
  if (rowCount !== sum.rows) throw damaged(`table ${sum.name} has ${rowCount} rows in place of ${sum.rows}`);
}

async function setSequences(db: Kysely<unknown>, { sequences }: ArchiveManifest): Promise<void> {
  for (const { name, lastValue, isCalled } of sequences) {
    await sql`select setval(${name}::regclass, ${lastValue}::bigint, ${isCalled})`.execute(db);
  }
}

async function renewLog(db: Kysely<unknown>): Promise<string> {
  const origin = await readOrigin(db);
  const { rows } = await sql<{ id: string }>`
    update cluster set log_id = gen_random_uuid(), log_origin = ${origin} returning log_id::text as id`.execute(db);
  const [row] = rows;
  if (row === undefined) throw damaged("the row of the cluster is missing");
  return row.id;
}

/** Entries between two looks at whether it is to end. */
const AUDIT_PIECE = 10_000;

async function judgeAudit(db: Kysely<Database>, signal: AbortSignal): Promise<AuditProblem | null> {
  let after: AuditHead = AUDIT_START;
  for (;;) {
    signal.throwIfAborted();
    const verdict = await verifyAudit(db, { after, limit: AUDIT_PIECE });
    if (verdict.problem !== null || verdict.complete) return verdict.problem;
    after = verdict.through;
  }
}
