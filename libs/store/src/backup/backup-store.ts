import { createHash } from "node:crypto";
import { type Kysely, sql } from "kysely";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { MIGRATIONS } from "../database/migrations/index.ts";
import { writeArchive } from "./archive-file.ts";
import { ArchiveError, encodeFrame, encodeJsonFrame, type Frame } from "./archive-frames.ts";
import type { ArchivedFile, ArchivedTable, ArchiveManifest, TableSum } from "./archive-manifest.ts";
import { type ArchiveSummary, updateDigest } from "./read-archive.ts";
import { readSequences, readTables } from "./read-schema.ts";
import { appliedMigrations, inStoreSession, type StoreSession } from "./store-session.ts";

/** What to back up, and where. */
export interface BackupOptions {
  readonly url: string;
  /** The archive's path. An existing file is replaced once the new one is complete. */
  readonly path: string;
  /** The passphrase to encrypt with; null for an unencrypted archive. */
  readonly passphrase: string | null;
  /** The running release of Rollcall. */
  readonly rollcall: string;
  /** Files of the data directory to include. */
  readonly files: readonly ArchivedFile[];
  /** Called after each table is copied. */
  readonly onTable: (sum: TableSum) => void;
  readonly signal: AbortSignal;
}

/** What a backup has written. */
export interface BackupReport extends ArchiveSummary {
  /** Size of the archive in bytes. */
  readonly archiveBytes: number;
}

/**
 * Copy the whole database into an archive, as of one moment. Other processes can read and write in the meantime.
 * Memory use does not grow with the size of the database.
 *
 * @throws ArchiveError when the database has no schema, or the schema of a newer release.
 */
export async function backupRecord(options: BackupOptions): Promise<BackupReport> {
  const { url, path, passphrase, files, signal } = options;
  return inStoreSession({ url, applicationName: "rollcall backup", mode: "read" }, async (session) => {
    const manifest = await readManifest(session.db, options.rollcall);
    const sums: TableSum[] = [];
    const noted = (sum: TableSum) => {
      sums.push(sum);
      options.onTable(sum);
    };
    const archiveBytes = await writeArchive(
      path,
      { passphrase, signal },
      sealedByDigest(contentOf(session, manifest, files, noted)),
    );
    return {
      manifest,
      archiveBytes,
      isEncrypted: passphrase !== null,
      tables: sums,
      files: files.map((file) => file.path),
    };
  });
}

async function readManifest(db: Kysely<unknown>, rollcall: string): Promise<ArchiveManifest> {
  const migrations = await appliedMigrations(db);
  if (migrations.length === 0) throw new ArchiveError("this database has no Rollcall tables");
  const unknown = migrations.filter((name) => !Object.hasOwn(MIGRATIONS, name));
  if (unknown.length > 0) {
    throw new ArchiveError(
      `this database was migrated by a newer release (${unknown.join(", ")}): back it up with that release`,
    );
  }
  const { rows } = await sql<Facts>`
    select
      current_setting('server_version') as postgres,
      to_char(transaction_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "takenAt",
      cluster_id::text as "clusterId",
      log_id::text as "logId",
      (select coalesce(max(revision), 0)::text from events) as revision,
      (select sequence::text from audit_head) as "auditSequence",
      (select encode(hash, 'hex') from audit_head) as "auditHash"
    from cluster`.execute(db);
  const [facts] = rows;
  if (facts === undefined) throw new ArchiveError("no Rollcall process has used this database yet");
  const { auditSequence, auditHash, ...rest } = facts;
  const audit = { sequence: auditSequence ?? "0", hash: auditHash ?? "" };
  const tables = await readTables(db);
  // Lock the tables, so that later migrations wait until the tables are copied. Earlier migrations are complete
  // and visible here.
  const names = tables.map(({ name }) => sql.id(name));
  await sql`lock table ${sql.join(names)} in access share mode`.execute(db);
  return { rollcall, ...rest, audit, migrations, tables, sequences: await readSequences(db) };
}

interface Facts extends Pick<ArchiveManifest, "postgres" | "takenAt" | "clusterId" | "logId" | "revision"> {
  /** The sequence of the audit log's head; null if the head was removed by hand. */
  readonly auditSequence: string | null;
  readonly auditHash: string | null;
}

async function* contentOf(
  { client }: StoreSession,
  manifest: ArchiveManifest,
  files: readonly ArchivedFile[],
  onTable: (sum: TableSum) => void,
): AsyncGenerator<Frame> {
  yield { kind: "manifest", body: json(manifest) };
  for (const table of manifest.tables) {
    yield { kind: "table", body: Buffer.from(table.name) };
    const sum = yield* dataOf(client, table);
    yield { kind: "table-end", body: json(sum) };
    onTable(sum);
  }
  for (const file of files) yield { kind: "file", body: json(file) };
}

const PIECE_BYTES = 64 * 1024;

async function* dataOf(client: pg.Client, { name, columns }: ArchivedTable): AsyncGenerator<Frame, TableSum> {
  const list = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
  const copying = client.query(copyTo(`copy ${pg.escapeIdentifier(name)} (${list}) to stdout`));
  const hash = createHash("sha256");
  let bytes = 0;
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  const take = (): Frame => {
    const body = Buffer.concat(pending);
    hash.update(body);
    bytes += body.length;
    [pending, pendingBytes] = [[], 0];
    return { kind: "data", body };
  };
  for await (const piece of copying) {
    pending.push(piece);
    pendingBytes += piece.length;
    if (pendingBytes >= PIECE_BYTES) yield take();
  }
  if (pendingBytes > 0) yield take();
  return { name, rows: copying.rowCount, bytes, sha256: hash.digest("hex") };
}

/** Encode the content as frames, and add a last frame with the digest of all others. */
async function* sealedByDigest(content: AsyncIterable<Frame>): AsyncGenerator<Buffer> {
  const digest = createHash("sha256");
  for await (const { kind, body } of content) {
    updateDigest(digest, { kind, body });
    yield encodeFrame(kind, body);
  }
  yield encodeJsonFrame("end", { sha256: digest.digest("hex") });
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
