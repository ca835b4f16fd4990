import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  cliVersion,
  columnsOf,
  Failure,
  formatBytes,
  type Shell,
  showing,
  UsageError,
  withProgress,
} from "@rollcall/cli";
import { bool, defineKeys } from "@rollcall/config";
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
import { type PlaceWish, withRecord } from "../backup/store-location.ts";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadConfiguration } from "../config/load.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, type VerbHelp, verbFlags } from "../config/verb-help.ts";

const BACKUP_KEYS = {
  ...ARCHIVE_KEYS,
  ...defineKeys({
    "Backup.Force": {
      schema: bool(),
      default: false,
      flag: "force",
      doc: "Replace the file if it exists.",
    },
  }),
};

interface BackupValues extends ArchiveValues {
  readonly "Backup.Force": boolean;
}

/** The flags of `backup`, for completion. */
export const BACKUP_FLAGS = verbFlags(BACKUP_KEYS);

const HELP: VerbHelp = {
  usage: "backup [file] [options]\n       rollcall backup verify <file> [options]",
  description:
    "Back up the whole database into one consistent archive: the Postgres of --database-url, or the data " +
    "directory of `up`, running or stopped. Running processes are not interrupted. `verify` reads an archive and " +
    "verifies its checksums; it needs no database.",
  keys: BACKUP_KEYS,
  notes: [
    "Without a file, or with a directory, the archive is named after the current time. An existing file is not " +
      "replaced without --force. The archive contains secrets that " +
      "give access to the whole cluster: the cluster's secret and, from a data directory, the first access token, " +
      "the authority of `up --tls` and the local agent's key. Encrypt it, or protect it like a private key.",
    "Exit code: 0 if the archive is complete and on disk, 1 if not, 2 for wrong usage, such as a missing file.",
  ],
};

/** `rollcall backup`. Returns the exit code. */
export async function runBackup(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(withLongFlags(words), BACKUP_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  const { values } = await loadConfiguration<BackupValues>(
    { keys: BACKUP_KEYS, alsoKnown: ALL_KEYS },
    { shell, file: args.file, flags: args.flags },
  );
  const [word, ...more] = args.words;
  if (word === "verify") return verify(more, values, shell);
  if (more.length > 0) throw new UsageError(`backup takes one file; unexpected argument '${more[0]}'`);
  const namesDirectory = args.flags["data-dir"] !== undefined;
  const place = { config: values, shell, namesDirectory, whileRunning: true, restore: null };
  return backUp(word ?? ".", values, place, process);
}

async function backUp(
  named: string,
  values: BackupValues,
  wish: PlaceWish & { readonly shell: Shell },
  process: NodeJS.Process,
): Promise<number> {
  const shell = withProgress(wish.shell);
  const path = await archivePath(resolve(shell.cwd, named), shell.wallMs(), values["Backup.Force"]);
  const passphrase = await readPassphrase(values, shell);
  const backingUp = (signal: AbortSignal) =>
    withRecord({ ...wish, shell }, async ({ url, dataDirectory }) =>
      backupRecord({
        ...{ url, path, passphrase, signal },
        rollcall: cliVersion(),
        files: dataDirectory === null ? [] : await readDirectoryFiles(dataDirectory),
        onTable: tableProgress(shell, values),
      }),
    );
  const report = await showing(shell, "back up the database", () => interruptible(process, backingUp));
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
  const summary = await showing(withProgress(shell), `verify ${named}`, () => verified(path, passphrase));
  if (values["Archive.Output"] === "json") writeJson(shell, { file: path, ...plainSummary(summary) });
  else shell.out.write(`${["The archive is intact.", ...summaryLines(summary)].join("\n")}\n`);
  return 0;
}

async function archivePath(path: string, wallMs: number, force: boolean): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) {
    const time = new Date(wallMs).toISOString().slice(0, 19).replaceAll(":", "-");
    return join(path, `rollcall-${time}Z.backup`);
  }
  // Refuse a path that is not a regular file. The archive replaces an existing file, which would destroy a device such
  // as /dev/stdout.
  if (found !== null && !found.isFile()) throw new Failure(`cannot write ${path}: it is not a regular file`);
  if (found !== null && !force) throw new Failure(`${path} exists: use another name, or --force to replace it`);
  return path;
}

function writeJson({ out }: Pick<Shell, "out">, value: unknown): void {
  out.write(`${JSON.stringify(value, null, 2)}\n`);
}
