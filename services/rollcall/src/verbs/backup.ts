import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cliVersion, columnsOf, Failure, formatBytes, type Shell, UsageError } from "@rollcall/cli";
import { backupRecord } from "@rollcall/store";
import {
  ARCHIVE_KEYS,
  type ArchiveValues,
  interruptible,
  plainSummary,
  readPassphrase,
  summaryLines,
  tableProgress,
  verified,
  withLongFlags,
} from "../backup/archive-options.ts";
import { readDirectoryFiles } from "../backup/directory-files.ts";
import { type PlaceWish, withRecord } from "../backup/record-place.ts";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadConfiguration } from "../config/load.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, type VerbHelp, verbFlags } from "../config/verb-help.ts";

/** The flags of `backup`, for completion. */
export const BACKUP_FLAGS = verbFlags(ARCHIVE_KEYS);

const HELP: VerbHelp = {
  usage: "backup [file] [options]\n       rollcall backup verify <file> [options]",
  description:
    "Copy the whole record, as it is at one moment, into one archive: of the Postgres of --database-url, or of the " +
    "data directory of `up`, running or stopped. Others go on working meanwhile. `verify` reads a whole archive and " +
    "compares it with its checksums; it needs no database.",
  keys: ARCHIVE_KEYS,
  notes: [
    "Without a file, or with a directory, the archive is named after the time. It holds what opens the whole " +
      "cluster: its secret, and of a data directory the first access token, the authority of `up --tls` and the " +
      "local agent's key. Encrypt it, or keep it as you keep keys.",
    "Exits with 0 when the archive is whole and on the disk, 1 when not, 2 for wrong usage, such as a missing file.",
  ],
};

/** `rollcall backup`. Answers the exit code. */
export async function runBackup(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(withLongFlags(words), ARCHIVE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  const { values } = await loadConfiguration<ArchiveValues>(
    { keys: ARCHIVE_KEYS, alsoKnown: ALL_KEYS },
    { shell, file: args.file, flags: args.flags },
  );
  const [word, ...more] = args.words;
  if (word === "verify") return verify(more, values, shell);
  if (more.length > 0) throw new UsageError(`backup takes one file: '${more[0]}'`);
  const namesDirectory = args.flags["data-dir"] !== undefined;
  const place = { config: values, shell, namesDirectory, whileRunning: true, restore: null };
  return backUp(word ?? ".", values, place, process);
}

async function backUp(
  named: string,
  values: ArchiveValues,
  wish: PlaceWish & { readonly shell: Shell },
  process: NodeJS.Process,
): Promise<number> {
  const { shell } = wish;
  const path = await archivePath(resolve(shell.cwd, named), shell.wallMs());
  const passphrase = await readPassphrase(values, shell);
  const report = await interruptible(process, (signal) =>
    withRecord(wish, async ({ url, dataDirectory }) =>
      backupRecord({
        ...{ url, path, passphrase, signal },
        rollcall: cliVersion(),
        files: dataDirectory === null ? [] : await readDirectoryFiles(dataDirectory),
        onTable: tableProgress(shell, values),
      }),
    ),
  );
  const { archiveBytes } = report;
  if (values["Archive.Output"] === "json") {
    writeJson(shell, { file: path, bytes: archiveBytes, ...plainSummary(report) });
  } else {
    shell.out.write(`${[`Backed up to ${path} (${formatBytes(archiveBytes)})`, ...summaryLines(report)].join("\n")}\n`);
  }
  return 0;
}

async function verify(words: readonly string[], values: ArchiveValues, shell: Shell): Promise<number> {
  const [named, ...more] = words;
  if (named === undefined || more.length > 0) throw new UsageError("backup verify takes one file");
  const path = resolve(shell.cwd, named);
  const passphrase = await readPassphrase(values, shell);
  const summary = await verified(path, passphrase);
  if (values["Archive.Output"] === "json") writeJson(shell, { file: path, ...plainSummary(summary) });
  else shell.out.write(`${["The archive is whole.", ...summaryLines(summary)].join("\n")}\n`);
  return 0;
}

async function archivePath(path: string, wallMs: number): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) {
    const time = new Date(wallMs).toISOString().slice(0, 19).replaceAll(":", "-");
    return join(path, `rollcall-${time}Z.backup`);
  }
  // The archive takes the place of what is there, which would be the end of /dev/stdout.
  if (found !== null && !found.isFile()) throw new Failure(`cannot write ${path}: it is not a regular file`);
  return path;
}

function writeJson({ out }: Pick<Shell, "out">, value: unknown): void {
  out.write(`${JSON.stringify(value, null, 2)}\n`);
}
