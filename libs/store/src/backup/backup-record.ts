import { createHash } from "node:crypto";
import { type Kysely, sql } from "kysely";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { MIGRATIONS } from "../database/migrations/index.ts";
import { writeArchive } from "./archive-file.ts";
import { ArchiveError, encodeFrame, encodeJsonFrame, type Frame } from "./archive-frames.ts";
import type { ArchivedFile, ArchivedTable, ArchiveManifest, TableSum } from "./archive-manifest.ts";
import { type ArchiveSummary, updateDigest } from "./read-archive.ts";
import { readSequences, readTables } from "./record-schema.ts";
import { appliedMigrations, inRecordSession, type RecordSession } from "./record-session.ts";

/** What to back up, and where to. */
export interface BackupOptions {
  readonly url: string;
  /** The archive. A file that is there is replaced when the new one is whole. */
  readonly path: string;
  /** Null for an archive in clear text. */
  readonly passphrase: string | null;
  /** This release. */
  readonly rollcall: string;
  /** Files of the data directory to keep with it. */
  readonly files: readonly ArchivedFile[];
  /** Told of each table that is copied. */
  readonly onTable: (sum: TableSum) => void;
  readonly signal: AbortSignal;
}

/** What was written. */
export interface BackupReport extends ArchiveSummary {
  /** Size of the archive. */
  readonly archiveBytes: number;
}

/**
 * Copy the whole record, as it is at one moment, into an archive. Others read and write meanwhile, and nothing of the
 * size of the record is held in memory.
 *
 * @throws ArchiveError where there is no record, or one of a newer release.
 */
export async function backupRecord(options: BackupOptions): Promise<BackupReport> {
  const { url, path, passphrase, files, signal } = options;
  return inRecordSession({ url, applicationName: "rollcall backup", mode: "read" }, async (session) => {
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
  if (migrations.length === 0) throw new ArchiveError("there is no record of Rollcall in this database");
  const unknown = migrations.filter((name) => !Object.hasOwn(MIGRATIONS, name));
  if (unknown.length > 0) {
    throw new ArchiveError(
      `this database was migrated by a newer release (${unknown.join(", ")}): back it up with that one`,
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
  if (facts === undefined) throw new ArchiveError("no process of Rollcall has used this database yet");
  const { auditSequence, auditHash, ...rest } = facts;
  const audit = { sequence: auditSequence ?? "0", hash: auditHash ?? "" };
  const tables = await readTables(db);
  // A migration waits until they are copied; what it has done before is not seen half.
  const names = tables.map(({ name }) => sql.id(name));
  await sql`lock table ${sql.join(names)} in access share mode`.execute(db);
  return { rollcall, ...rest, audit, migrations, tables, sequences: await readSequences(db) };
}

interface Facts extends Pick<ArchiveManifest, "postgres" | "takenAt" | "clusterId" | "logId" | "revision"> {
  /** Null where the head was removed by hand. */
  readonly auditSequence: string | null;
  readonly auditHash: string | null;
}

async function* contentOf(
  { client }: RecordSession,
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

/** Content as frames, with a last one that holds the digest of all others. */
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
