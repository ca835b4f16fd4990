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
import { readObjects, readTables } from "./read-schema.ts";
import { inStoreSession, type StoreSession } from "./store-session.ts";

/** What to restore, and where. */
export interface RestoreOptions {
  readonly url: string;
  readonly path: string;
  readonly passphrase: string | null;
  /** The result of verifyArchive(). */
  readonly summary: ArchiveSummary;
  /** Whether to remove an existing schema and its data, in the same transaction. */
  readonly replace: boolean;
  /** Whether to restore an audit log whose chain is broken. */
  readonly acceptBrokenAudit: boolean;
  /** Called after each table is restored. */
  readonly onTable: (sum: TableSum) => void;
  readonly signal: AbortSignal;
}

/** The result of a restore. */
export interface RestoreReport extends ArchiveSummary {
  /** The new id of the event log. */
  readonly newLogId: string;
  /** The first problem in the audit log's chain; null when the chain is intact. */
  readonly auditProblem: AuditProblem | null;
  /** Files for the caller to write into the data directory, if there is one. */
  readonly fileContents: readonly ArchivedFile[];
}

/**
 * Restore a verified archive into a database in a single transaction. Checksums are verified again while reading. The
 * event log gets a new id, so that no watcher resumes in a history that no longer exists.
 *
 * @throws ArchiveError when the archive is damaged or from a newer release, the database is not empty or is in use, or
 *   the audit log is broken.
 */
export async function restoreRecord(options: RestoreOptions): Promise<RestoreReport> {
  const { url, summary } = options;
  refuseUnknownMigrations(summary.manifest);
  options.signal.throwIfAborted();
  return inStoreSession({ url, applicationName: "rollcall restore", mode: "write" }, async (session) => {
    const { db } = session;
    await refuseIfInUse(db);
    await makeRoom(db, options.replace);
    await createSchema(db, summary.manifest);
    const fileContents = await copyIn(session, options);
    await setSequences(db, summary.manifest);
    await migrateFurther(db, summary.manifest);
    const newLogId = await renewLog(db);
    const auditProblem = await evaluateAudit(db as Kysely<Database>, options.signal);
    if (auditProblem !== null && !options.acceptBrokenAudit) {
      throw new ArchiveError(
        `the audit log in the archive is broken at entry ${auditProblem.sequence}: ${auditProblem.message}; ` +
          "pass --accept-broken-audit to restore it anyway",
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
    `the archive comes from a newer release, ${rollcall} (${unknown.join(", ")}): restore it with that release`,
  );
}

/**
 * Refuse to replace the data under running processes of the control plane: they would continue with the old data in
 * memory.
 */
async function refuseIfInUse(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select distinct application_name as name from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and application_name like 'rollcall %'
      -- A pooler keeps connections of dead processes. A live process renews its lease every two seconds.
      and coalesce(state <> 'idle' or state_change > now() - interval '15 seconds', true)
    order by 1`.execute(db);
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(", ");
  throw new ArchiveError(`the database is in use (${names}): stop every process of the control plane first`);
}

async function makeRoom(db: Kysely<unknown>, replace: boolean): Promise<void> {
  const { tables, sequences, functions } = await readObjects(db);
  if (tables.length > 0 && !replace) {
    throw new ArchiveError("the database already has Rollcall tables: pass --replace to replace them with the archive");
  }
  // Do not use `cascade`, so that Postgres refuses to drop tables on which objects of other programs depend, and names
  // these objects.
  if (tables.length > 0) await sql.raw(`drop table ${tables.join(", ")}`).execute(db);
  // Use `if exists`, because the sequences of identity columns were dropped with their tables.
  for (const name of sequences) await sql.raw(`drop sequence if exists ${name}`).execute(db);
  for (const name of functions) await sql.raw(`drop function ${name}`).execute(db);
}

/** Create the schema that the database had when the archive was written. */
async function createSchema(db: Kysely<unknown>, { migrations, tables }: ArchiveManifest): Promise<void> {
  // Create the table as the migrator would.
  await sql`create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(db);
  await sql`
    create table kysely_migration_lock (id varchar(255) primary key, is_locked integer not null default 0)
  `.execute(db);
  await applyMigrations(db, migrations);
  const made = await readTables(db);
  const names = (list: readonly ArchivedTable[]) => [...list.map(({ name }) => name)].sort().join(", ");
  if (names(made) !== names(tables)) throw damaged("its tables do not match its migrations");
  // Delete the rows that migrations inserted: the archive contains their final state.
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

/** Migrate the schema of an older release to the current one, including the restored data. */
function migrateFurther(db: Kysely<unknown>, { migrations }: ArchiveManifest): Promise<void> {
  return applyMigrations(
    db,
    Object.keys(MIGRATIONS).filter((name) => !migrations.includes(name)),
  );
}

async function copyIn({ client }: StoreSession, options: RestoreOptions): Promise<readonly ArchivedFile[]> {
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

/** A table that is being copied into the database. */
interface Copying {
  readonly stream: CopyStreamQuery;
  /** Why the copy ended early. The stream emits its error only once, perhaps while nothing awaits the stream. */
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
  if (rowCount !== sum.rows) throw damaged(`table ${sum.name} has ${rowCount} rows instead of ${sum.rows}`);
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
  if (row === undefined) throw damaged("the cluster row is missing");
  return row.id;
}

/** How many entries to verify between two checks of the abort signal. */
const AUDIT_PIECE = 10_000;

async function evaluateAudit(db: Kysely<Database>, signal: AbortSignal): Promise<AuditProblem | null> {
  let after: AuditHead = AUDIT_START;
  for (;;) {
    signal.throwIfAborted();
    const decision = await verifyAudit(db, { after, limit: AUDIT_PIECE });
    if (decision.problem !== null || decision.complete) return decision.problem;
    after = decision.through;
  }
}
