import { resolve } from "node:path";
import { columnsOf, type Shell, UsageError } from "@rollcall/cli";
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
import { HalfRestoredError, withRecord } from "../backup/record-place.ts";
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
        "Remove the record that is there, in the transaction that restores the archive: if anything fails, it stays " +
        "as it was. Data that an older Postgres has made in the data directory is moved aside, and kept. Files of " +
        "the data directory that are in the archive are replaced.",
    },
    "Restore.AcceptBrokenAudit": {
      schema: bool(),
      default: false,
      flag: "accept-broken-audit",
      doc: "Restore an audit log although its chain of hashes is broken: it was broken when the archive was written.",
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
    "Bring an archive of `rollcall backup` into an empty database: that of --database-url, or of a data directory of " +
    "`up`, which need not be there. The archive is compared with its checksums before anything is touched, and " +
    "restored in one transaction. No process of the control plane may run on that database.",
  keys: RESTORE_KEYS,
  notes: [
    "The log gets a new id: watchers that resume are answered REVISION_COMPACTED and list again. Agents come back by " +
      "themselves; executions that the record does not know are shown as ORPHANED and go on running. What happened " +
      "after the backup is not in the record.",
    "A restore into a data directory that is cut short, by a crash or a kill, leaves a note there: nothing starts " +
      "in that directory until the restore is run again with --replace, or undone as the message says.",
    "Exits with 0 when everything is restored, 1 when it is not, 2 for wrong usage, such as a missing file.",
  ],
};

/** `rollcall restore`. Answers the exit code. */
export async function runRestore(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
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
  const summary = await verified(path, passphrase);
  refuseStrangeFiles(summary.files.map((file) => ({ path: file })));
  const replace = values["Restore.Replace"];
  const namesDirectory = args.flags["data-dir"] !== undefined;
  const wish = { config: values, shell, namesDirectory, whileRunning: false, restore: { archive: path, replace } };
  const { report, setAside } = await interruptible(process, (signal) =>
    withRecord(wish, async ({ url, dataDirectory, ...place }) => {
      const done = await restoreRecord({
        ...{ url, path, passphrase, summary, replace, signal },
        acceptBrokenAudit: values["Restore.AcceptBrokenAudit"],
        onTable: tableProgress(shell, values),
      });
      if (dataDirectory !== null) await writeFiles(dataDirectory, done.fileContents);
      return { report: done, setAside: place.setAside };
    }),
  );
  const { newLogId, auditProblem } = report;
  if (values["Archive.Output"] === "json") {
    const result = { file: path, newLogId, setAside, auditProblem: auditProblem?.message ?? null };
    shell.out.write(`${JSON.stringify({ ...result, ...plainSummary(report) }, null, 2)}\n`);
    return 0;
  }
  const lines = [
    `Restored ${path}`,
    ...summaryLines(report),
    `The log is ${newLogId} from now on`,
    auditProblem === null ? "The audit log is intact" : `The audit log is broken: ${auditProblem.message}`,
    ...(setAside === null ? [] : [`The data of the older Postgres is in ${setAside}: remove it when all is well`]),
  ];
  shell.out.write(`${lines.join("\n")}\n`);
  return 0;
}

async function writeFiles(dataDirectory: string, files: readonly ArchivedFile[]): Promise<void> {
  try {
    await writeDirectoryFiles(dataDirectory, files);
  } catch (cause) {
    throw new HalfRestoredError(
      `the record is restored, and the files of ${dataDirectory} are not: ${Object(cause).message}; mend that, then ` +
        "restore again with --replace",
      { cause },
    );
  }
}
