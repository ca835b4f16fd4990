import { damaged } from "./archive-frames.ts";

/** A table of the record in an archive. */
export interface ArchivedTable {
  readonly name: string;
  /** Those that are copied: what Postgres computes by itself is not. */
  readonly columns: readonly string[];
}

/** Where a sequence stood. */
export interface ArchivedSequence {
  readonly name: string;
  readonly lastValue: string;
  readonly isCalled: boolean;
}

/** What an archive says of itself before its content. Numbers that may be large are texts. */
export interface ArchiveManifest {
  /** The release that wrote it. */
  readonly rollcall: string;
  /** As Postgres tells it, such as "18.4". */
  readonly postgres: string;
  /** When its snapshot was taken, in RFC 3339. */
  readonly takenAt: string;
  readonly clusterId: string;
  readonly logId: string;
  /** The last revision of the log. */
  readonly revision: string;
  /** The head of the audit log. */
  readonly audit: { readonly sequence: string; readonly hash: string };
  readonly migrations: readonly string[];
  /** In the order of the content: a table comes after those that it refers to. */
  readonly tables: readonly ArchivedTable[];
  readonly sequences: readonly ArchivedSequence[];
}

/** What was copied of a table. */
export interface TableSum {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  /** Of the bytes, hexadecimal. */
  readonly sha256: string;
}

/** A file of a data directory. */
export interface ArchivedFile {
  /** Relative to the data directory. */
  readonly path: string;
  readonly mode: number;
  /** Base64. */
  readonly content: string;
}

/** Read the manifest of an archive. Throws ArchiveError when it is none. */
export function parseManifest(body: Buffer): ArchiveManifest {
  const value = parseJson(body);
  if (!isManifest(value)) throw damaged("its manifest cannot be read");
  return value;
}

/** Read what was copied of a table. Throws ArchiveError. */
export function parseTableSum(body: Buffer): TableSum {
  const value = parseJson(body);
  const { name, rows, bytes, sha256 } = Object(value);
  if (typeof name !== "string" || !isCount(rows) || !isCount(bytes) || typeof sha256 !== "string") {
    throw damaged("the sum of a table cannot be read");
  }
  return { name, rows, bytes, sha256 };
}

/** Read a file. Throws ArchiveError, also for a path that leads out of the directory. */
export function parseFile(body: Buffer): ArchivedFile {
  const { path, mode, content } = Object(parseJson(body));
  if (typeof path !== "string" || !isCount(mode) || typeof content !== "string") {
    throw damaged("a file in it cannot be read");
  }
  if (path.startsWith("/") || path.split("/").some((part) => part === ".." || part === "")) {
    throw damaged(`a file in it would leave the data directory: ${JSON.stringify(path)}`);
  }
  return { path, mode: mode & 0o700, content };
}

/** Read any JSON of an archive. Throws ArchiveError. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (cause) {
    throw damaged("a piece is not JSON", cause);
  }
}

/** Names of the record's tables, columns and migrations. They become part of statements, quoted. */
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
