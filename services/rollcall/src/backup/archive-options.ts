import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { counted, Failure, formatBytes, type Shell, UsageError, unreadableFile } from "@rollcall/cli";
import { defineKeys, oneOf, optional, text } from "@rollcall/config";
import { isSystemError } from "@rollcall/process";
import { ArchiveError, type ArchiveSummary, type TableSum, verifyArchive } from "@rollcall/store";
import { PROCESS_KEYS } from "../config/process-keys.ts";

/** The keys that every verb with an archive has. */
export const ARCHIVE_KEYS = {
  "Data.Dir": PROCESS_KEYS["Data.Dir"],
  "Database.URL": PROCESS_KEYS["Database.URL"],
  "Database.DirectURL": PROCESS_KEYS["Database.DirectURL"],
  ...defineKeys({
    "Archive.PassphraseFile": {
      schema: optional(text()),
      default: undefined,
      flag: "passphrase-file",
      doc:
        "File whose first line is the archive's passphrase; - reads it from standard input. With it, a backup is " +
        "encrypted (AES-256-GCM, key derived by scrypt). Without the passphrase, an encrypted archive cannot be " +
        "read.",
    },
    "Archive.Output": {
      schema: oneOf<"table" | "json">(["table", "json"]),
      default: "table" as const,
      flag: "output",
      doc: "Output format: table for readable lines, json for one JSON object. -o is the short form.",
    },
  }),
};

export interface ArchiveValues {
  readonly "Data.Dir": string | undefined;
  readonly "Database.URL": string | undefined;
  readonly "Database.DirectURL": string | undefined;
  readonly "Archive.PassphraseFile": string | undefined;
  readonly "Archive.Output": "table" | "json";
}

/** Replace the short form of --output by the long one. */
export function withLongFlags(words: readonly string[]): readonly string[] {
  return words.map((word) => (word === "-o" ? "--output" : word));
}

/**
 * Read the passphrase from the configured file; null when no file is configured. Throws UsageError when the file
 * contains no passphrase.
 */
export async function readPassphrase(values: ArchiveValues, shell: Shell): Promise<string | null> {
  const named = values["Archive.PassphraseFile"];
  if (named === undefined) return null;
  const content = named === "-" ? await shell.readInput?.() : await readNamed(resolve(shell.cwd, named));
  const [line = ""] = (content ?? "").split(/\r?\n/);
  if (line === "") throw new UsageError(`the first line of ${named} contains no passphrase`);
  return line;
}

async function readNamed(path: string): Promise<string> {
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw unreadableFile(path, cause, "the passphrase in");
  });
}

/**
 * Read a whole archive and verify its checksums. Throws Failure when it is damaged, and UsageError when it cannot be
 * read.
 */
export async function verified(path: string, passphrase: string | null): Promise<ArchiveSummary> {
  try {
    return await verifyArchive(path, passphrase);
  } catch (error) {
    if (error instanceof ArchiveError) throw new Failure(error.message, { cause: error });
    throw isSystemError(error) ? unreadableFile(path, error) : error;
  }
}

/** A failure after which some changes remain. interruptible() reports such a failure even after a signal. */
export class PartialFailure extends Failure {}

/** Run `work`, and abort it on SIGINT or SIGTERM. */
export async function interruptible<T>(process: NodeJS.Process, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const onSignal = () => ending.abort(new Failure("interrupted: nothing was changed"));
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    return await work(ending.signal);
  } catch (error) {
    throw ending.signal.aborted && !(error instanceof PartialFailure) ? ending.signal.reason : error;
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

/** Report each finished table on a terminal. */
export function tableProgress({ err }: Pick<Shell, "err">, values: ArchiveValues): (sum: TableSum) => void {
  if (!err.isTerminal || values["Archive.Output"] === "json") return () => {};
  return ({ name, rows, bytes }) =>
    err.write(`${name.padEnd(26)}${counted(rows, "row ", "rows").padStart(17)}  ${formatBytes(bytes)}\n`);
}

/** The contents of an archive as JSON. */
export function plainSummary({ manifest, isEncrypted, tables, files }: ArchiveSummary) {
  const { rollcall, postgres, takenAt, clusterId, logId, revision, audit } = manifest;
  return {
    ...{ rollcall, postgres, takenAt, clusterId, logId, revision, isEncrypted },
    auditHead: audit.sequence === "0" ? null : `${audit.sequence}:${audit.hash}`,
    tables,
    files,
  };
}

/** The contents of an archive as readable lines. */
export function summaryLines({ manifest, isEncrypted, tables, files }: ArchiveSummary): readonly string[] {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const { clusterId, logId, revision, takenAt, rollcall, postgres, audit } = manifest;
  return [
    `Taken ${takenAt} by Rollcall ${rollcall} from Postgres ${postgres}${isEncrypted ? ", encrypted" : ""}`,
    [
      counted(tables.length, "table"),
      counted(rows, "row"),
      ...(files.length === 0 ? [] : [`${counted(files.length, "file")} of the data directory`]),
    ].join(", "),
    `Cluster ${clusterId}`,
    `Event log ${logId} at revision ${revision}`,
    ...(audit.sequence === "0" ? [] : [`Audit head ${audit.sequence}:${audit.hash}`]),
  ];
}
