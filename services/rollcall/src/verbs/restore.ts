import { resolve } from "node:path";
import { columnsOf, type Shell, showing, UsageError, withProgress } from "@rollcall/cli";
import { bool, defineKeys } from "@rollcall/config";
import { type ArchivedFile, restoreRecord } from "@rollcall/store";
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
import { refuseStrangeFiles, writeDirectoryFiles } from "../backup/directory-files.ts";
import { HalfRestoredError, withRecord } from "../backup/store-location.ts";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadConfiguration } from "../config/load.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, type VerbHelp, verbFlags } from "../config/verb-help.ts";

const RESTORE_KEYS = {
  ...ARCHIVE_KEYS,
  ...defineKeys({
    "Restore.Replace": {
      schema: bool(),
      default: false,
      flag: "replace",
      doc:
        "Delete the existing data in the transaction that restores the archive: if anything fails, that data stays " +
        "unchanged. In a data directory, the data of an older Postgres is moved aside and kept, and files that are " +
        "in the archive are replaced.",
    },
    "Restore.AcceptBrokenAudit": {
      schema: bool(),
      default: false,
      flag: "accept-broken-audit",
      doc: "Restore an audit log whose hash chain was already broken when the archive was written.",
    },
  }),
};

interface RestoreValues extends ArchiveValues {
  readonly "Restore.Replace": boolean;
  readonly "Restore.AcceptBrokenAudit": boolean;
}

/** The flags of `restore`, for completion. */
export const RESTORE_FLAGS = verbFlags(RESTORE_KEYS);

const HELP: VerbHelp = {
  usage: "restore <file> [options]",
  description:
    "Restore an archive of `rollcall backup` into an empty database: the one at --database-url, or the one in a " +
    "data directory " +
    "of `up`, which is created if missing. The archive's checksums are verified before anything is changed, " +
    "and restored in one transaction. No control-plane process may run on that database.",
  keys: RESTORE_KEYS,
  notes: [
    "The event log gets a new id: watchers that resume get REVISION_COMPACTED and list again. Agents reconnect " +
      "automatically; executions that the database does not know are shown as ORPHANED and keep running. Changes " +
      "made after the backup are lost.",
    "If a restore into a data directory is interrupted by a crash or a kill, nothing starts in that directory until " +
      "you run the restore again with --replace, or undo it as the message says.",
    "Exit code: 0 if everything is restored, 1 if not, 2 for wrong usage, such as a missing file.",
  ],
};

/** `rollcall restore`. Returns the exit code. */
export async function runRestore(words: readonly string[], given: Shell, process: NodeJS.Process): Promise<number> {
  const shell = withProgress(given);
  const args = readArguments(withLongFlags(words), RESTORE_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  const [named, ...more] = args.words;
  if (named === undefined || more.length > 0) throw new UsageError("restore takes one file");
  const { values } = await loadConfiguration<RestoreValues>(
    { keys: RESTORE_KEYS, alsoKnown: ALL_KEYS },
    { shell, file: args.file, flags: args.flags },
  );
  const path = resolve(shell.cwd, named);
  const passphrase = await readPassphrase(values, shell);
  const summary = await showing(shell, `verify ${named}`, () => verified(path, passphrase));
  refuseStrangeFiles(summary.files.map((file) => ({ path: file })));
  const replace = values["Restore.Replace"];
  const namesDirectory = args.flags["data-dir"] !== undefined;
  const wish = { config: values, shell, namesDirectory, whileRunning: false, restore: { archive: path, replace } };
  const restoring = (signal: AbortSignal) =>
    withRecord(wish, async ({ url, dataDirectory, ...place }) => {
      const done = await restoreRecord({
        ...{ url, path, passphrase, summary, replace, signal },
        acceptBrokenAudit: values["Restore.AcceptBrokenAudit"],
        onTable: tableProgress(shell, values),
      });
      if (dataDirectory !== null) await writeFiles(dataDirectory, done.fileContents);
      return { report: done, setAside: place.setAside };
    });
  const { report, setAside } = await showing(shell, `restore ${named}`, () => interruptible(process, restoring));
  const { newLogId, auditProblem } = report;
  if (values["Archive.Output"] === "json") {
    const result = { file: path, newLogId, setAside, auditProblem: auditProblem?.message ?? null };
    shell.out.write(`${JSON.stringify({ ...result, ...plainSummary(report) }, null, 2)}\n`);
    return 0;
  }
  const lines = [
    `Restored ${path}`,
    ...summaryLines(report),
    `The event log has the new id ${newLogId}`,
    auditProblem === null ? "The audit log is intact" : `The audit log is broken: ${auditProblem.message}`,
    ...(setAside === null ? [] : [`The data of the older Postgres is in ${setAside}: remove it once everything works`]),
  ];
  shell.out.write(`${lines.join("\n")}\n`);
  return 0;
}

async function writeFiles(dataDirectory: string, files: readonly ArchivedFile[]): Promise<void> {
  try {
    await writeDirectoryFiles(dataDirectory, files);
  } catch (cause) {
    throw new HalfRestoredError(
      `the database is restored, but the files of ${dataDirectory} are not: ${Object(cause).message}; fix that, ` +
        "then restore again with --replace",
      { cause },
    );
  }
}
