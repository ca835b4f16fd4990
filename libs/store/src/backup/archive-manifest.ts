import { damaged } from "./archive-frames.ts";

/** A database table in an archive. */
export interface ArchivedTable {
  readonly name: string;
  /** The columns that are copied. Generated columns are left out. */
  readonly columns: readonly string[];
}

/** The state of a sequence. */
export interface ArchivedSequence {
  readonly name: string;
  readonly lastValue: string;
  readonly isCalled: boolean;
}

/** The header of an archive's content. Numbers that can be large are strings. */
export interface ArchiveManifest {
  /** The release of Rollcall that wrote the archive. */
  readonly rollcall: string;
  /** The version that Postgres reports, such as "18.4". */
  readonly postgres: string;
  /** When the snapshot was taken, in RFC 3339. */
  readonly takenAt: string;
  readonly clusterId: string;
  readonly logId: string;
  /** The last revision of the event log. */
  readonly revision: string;
  /** The head of the audit log. */
  readonly audit: { readonly sequence: string; readonly hash: string };
  readonly migrations: readonly string[];
  /** The tables in the order of the content: a table follows the tables that it references. */
  readonly tables: readonly ArchivedTable[];
  readonly sequences: readonly ArchivedSequence[];
}

/** The checksum and size of a table's copied data. */
export interface TableSum {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256 of the bytes, hexadecimal. */
  readonly sha256: string;
}

/** A file of a data directory. */
export interface ArchivedFile {
  /** The path relative to the data directory. */
  readonly path: string;
  readonly mode: number;
  /** The content in base64. */
  readonly content: string;
}

/** Parse an archive's manifest. Throws ArchiveError when it is malformed. */
export function parseManifest(body: Buffer): ArchiveManifest {
  const value = parseJson(body);
  if (!isManifest(value)) throw damaged("its manifest is invalid");
  return value;
}

/** Parse a table's checksum. Throws ArchiveError when it is malformed. */
export function parseTableSum(body: Buffer): TableSum {
  const value = parseJson(body);
  const { name, rows, bytes, sha256 } = Object(value);
  if (typeof name !== "string" || !isCount(rows) || !isCount(bytes) || typeof sha256 !== "string") {
    throw damaged("the checksum of a table is invalid");
  }
  return { name, rows, bytes, sha256 };
}

/**
 * Parse a file of the data directory. Throws ArchiveError when it is malformed, or when its path leads out
 * of the directory.
 */
export function parseFile(body: Buffer): ArchivedFile {
  const { path, mode, content } = Object(parseJson(body));
  if (typeof path !== "string" || !isCount(mode) || typeof content !== "string") {
    throw damaged("a file entry in it is invalid");
  }
  if (path.startsWith("/") || path.split("/").some((part) => part === ".." || part === "")) {
    throw damaged(`a file in it would leave the data directory: ${JSON.stringify(path)}`);
  }
  return { path, mode: mode & 0o700, content };
}

/** Parse any JSON in an archive. Throws ArchiveError when it is malformed. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw damaged("a frame is not valid JSON", cause);
  }
}

/** The format of names of tables, columns and migrations. Names become part of SQL statements, quoted. */
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const DIGITS = /^\d{1,19}$/;
const MOST_NAMES = 1_000;

function isManifest(value: unknown): value is ArchiveManifest {
  const { rollcall, postgres, takenAt, clusterId, logId, revision, audit, migrations, tables, sequences } =
    Object(value);
  return (
    [rollcall, postgres, takenAt, clusterId, logId].every((text) => typeof text === "string") &&
    DIGITS.test(String(revision)) &&
    DIGITS.test(String(Object(audit).sequence)) &&
    typeof Object(audit).hash === "string" &&
    isListOf(migrations, isName) &&
    isListOf(tables, isTable) &&
    isListOf(sequences, isSequence)
  );
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length <= MOST_NAMES && value.every(isItem);
}

function isTable(value: unknown): boolean {
  const { name, columns } = Object(value);
  return isName(name) && isListOf(columns, isName) && columns.length > 0;
}

function isSequence(value: unknown): boolean {
  const { name, lastValue, isCalled } = Object(value);
  return isName(name) && DIGITS.test(String(lastValue)) && typeof isCalled === "boolean";
}

function isName(value: unknown): boolean {
  return typeof value === "string" && NAME.test(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
