/** Exit codes of every command. */
export const DONE = 0;
export const FAILED = 1;
export const MISUSED = 2;
export const UNREACHED = 3;
export const INTERRUPTED = 130;

/**
 * The meanings of a command's exit codes. Codes 2 and 130 are not listed, because they mean the same for every command.
 * Code 3 is listed only where it has a special meaning.
 */
export interface ExitCodes {
  readonly done: string;
  readonly failed: string;
  /** Codes that only this command has. */
  readonly others?: Readonly<Record<string, string>>;
}

const REFUSED = "the control plane refused the request";
const UNKNOWN = `${REFUSED}, or could not be reached`;

const PRINTS: ExitCodes = { done: "printed", failed: REFUSED };
const WHEN_STRICT = "with --strict also: there was nothing to change";
const CHANGES: ExitCodes = {
  done: "changed, or there was nothing to change",
  failed: `nothing was changed: ${REFUSED}; ${WHEN_STRICT}`,
};
const CHANGES_NODES: ExitCodes = {
  done: "every node was changed, or there was nothing to change; with --dry-run: no change would be refused",
  failed:
    `the change of at least one node was refused, or would be with --dry-run; the confirmation was declined; ` +
    `${REFUSED}; ${WHEN_STRICT}`,
};
const CHANGES_ONE: ExitCodes = { done: "changed", failed: `nothing was changed: ${REFUSED}` };
const PRINTS_LOCALLY: ExitCodes = { done: "printed", failed: "the output could not be written" };
const NO_CONTEXT = "the context does not exist, or the contexts file cannot be read or written";
const OF_CONTEXTS: ExitCodes = { done: "done", failed: NO_CONTEXT };
const JOB_RESULT: ExitCodes = {
  done: "every job has been ready for update.minReadyTime (services, daemons) or has completed (batch, ops)",
  failed: `a job failed, was stopped or was replaced by another version, its update halted, or ${REFUSED}`,
};
const SERVES: ExitCodes = { done: "stopped by SIGTERM or SIGINT", failed: "could not start, or failed while running" };

/**
 * The exit codes of each command, keyed by its words without `rollcall`. A test compares them with the tree of
 * commands.
 */
export const EXIT_CODES: Readonly<Record<string, ExitCodes>> = {
  "node list": PRINTS,
  "node describe": PRINTS,
  "node approve": CHANGES_NODES,
  "node reject": CHANGES_NODES,
  "node delete": CHANGES_NODES,
  "node cordon": CHANGES_NODES,
  "node uncordon": CHANGES_NODES,
  "node undrain": CHANGES_NODES,
  "node mark-unhealthy": CHANGES_NODES,
  "node clear-mark": CHANGES_NODES,
  "node rotate-key": CHANGES_NODES,
  "node accept-hardware": CHANGES_NODES,
  "node ban": CHANGES_NODES,
  "node unban": CHANGES_NODES,
  "node wait": {
    done: "every node was seen in the requested states",
    failed: `--timeout passed before every node was in the requested states, or ${REFUSED}`,
  },
  "node drain": {
    done:
      "every node is drained; with --force: every drain has ended, even if a node has not confirmed the end of its " +
      "executions; with --detach: every drain was requested; with --dry-run: no drain would be refused",
    failed:
      `at least one drain was refused or cancelled, or would be refused with --dry-run; or ${REFUSED}; ` +
      `${WHEN_STRICT}`,
  },
  "node label": CHANGES_NODES,
  "node bans": PRINTS,
  "node why": PRINTS,
  "node health": PRINTS,
  top: PRINTS,
  options: PRINTS_LOCALLY,
  "node watch": { done: "stopped by --count", failed: REFUSED },
  "node summary": PRINTS,
  "job run": {
    ...JOB_RESULT,
    done: `${JOB_RESULT.done}; with --detach: every job is accepted; with --dry-run: every job would be accepted`,
    failed: `a job was refused, or would be with --dry-run; ${JOB_RESULT.failed}`,
  },
  "job wait": { ...JOB_RESULT, failed: `${JOB_RESULT.failed}, or --timeout passed before that` },
  "job list": PRINTS,
  "job executions": PRINTS,
  "job history": PRINTS,
  "job owners": PRINTS,
  "job describe": PRINTS,
  "job why": PRINTS,
  "job logs": {
    done: "all output that is still kept was printed",
    failed: `the output of an execution could not be read, or part of it was removed before it was read, or ${REFUSED}`,
  },
  "job stop": {
    done:
      "every job is stopped or had already ended; with --wait: all their executions have ended; with --dry-run: no " +
      "stop would be refused",
    failed:
      `at least one stop was refused, or would be with --dry-run; the confirmation was declined; ${REFUSED}; with ` +
      `--wait also: a job was started again; ${WHEN_STRICT}`,
  },
  "job delete": {
    done: "every job is deleted; with --dry-run: no deletion would be refused",
    failed:
      "at least one deletion was refused, or would be with --dry-run; the confirmation was declined; or " +
      `${REFUSED}`,
  },
  "job scale": CHANGES_ONE,
  "job restart": CHANGES_ONE,
  "job revert": {
    done: `the job is reverted, and ${JOB_RESULT.done}; with --detach: the new version is accepted`,
    failed: `the revert was refused; ${JOB_RESULT.failed}; ${WHEN_STRICT}`,
  },
  "job adopt": CHANGES_ONE,
  run: {
    done: "the command exited with 0; with --detach: the job is accepted",
    failed: "the command exited with 1",
    others: {
      "1 to 255": "the command's exit code, or 128 plus the number of the signal that ended it",
      "75":
        "the exit code is unknown (the command did not run, was stopped from outside and exited with 0, its node was " +
        "lost, or the control plane is unreachable); or the command succeeded but its output could not be read or " +
        "written in full, for example because it is no longer kept; with --detach: the job was accepted but its name " +
        "could not be written",
    },
  },
  "token create": CHANGES_ONE,
  "token list": PRINTS,
  "token show": PRINTS,
  "token revoke": CHANGES,
  "policy set": CHANGES_ONE,
  "policy preview": PRINTS,
  "policy list": PRINTS,
  "policy show": PRINTS,
  "policy delete": CHANGES_ONE,
  "brake status": PRINTS,
  "brake freeze": CHANGES,
  "brake release": CHANGES,
  events: { ...PRINTS, done: "printed; with --follow: ended by --limit" },
  "events republish": CHANGES_ONE,
  "webhook set": CHANGES_ONE,
  "webhook list": PRINTS,
  "webhook show": PRINTS,
  "webhook test": { done: "the receiver accepted the event", failed: `the event was not delivered, or ${REFUSED}` },
  "webhook replay": CHANGES_ONE,
  "webhook delete": CHANGES_ONE,
  apply: {
    done: "everything matches the files; with --dry-run: the files would be accepted",
    failed: `nothing was changed: the files were refused, or would be (--dry-run), or ${REFUSED}`,
  },
  diff: {
    done: "no differences",
    failed: "differences were found",
    others: {
      "3": `the comparison failed: ${UNKNOWN}; or no differences, but the output could not be written`,
    },
  },
  export: PRINTS,
  "audit list": PRINTS,
  "audit verify": {
    done: "the log is intact",
    failed: "the log is not intact",
    others: {
      "3": `the log could not be verified: ${UNKNOWN}; or it is intact, but the output could not be written`,
    },
  },
  "audit export": {
    done: "every entry was written",
    failed: `not every entry could be read or written, or ${REFUSED}`,
  },
  "audit prune": CHANGES_ONE,
  status: PRINTS,
  doctor: {
    done: "no problems; there may be warnings",
    failed: "at least one problem",
    others: { "3": "no problem was found, but not everything could be checked, or doctor itself failed" },
  },
  "config list": { done: "printed", failed: "printed, and some values contradict each other" },
  "config convert": PRINTS_LOCALLY,
  "config default": PRINTS_LOCALLY,
  login: { done: "the context is saved", failed: `the token was refused, or ${REFUSED}` },
  logout: { done: "the context no longer has a token", failed: `${NO_CONTEXT}; with --revoke also: ${REFUSED}` },
  whoami: PRINTS,
  console: { done: "signed in, or the address is printed", failed: `no sign-in before the time limit, or ${REFUSED}` },
  "access create": CHANGES_ONE,
  "access list": PRINTS,
  "access revoke": CHANGES,
  "context list": OF_CONTEXTS,
  "context use": OF_CONTEXTS,
  "context show": OF_CONTEXTS,
  "context delete": OF_CONTEXTS,
  "context rename": OF_CONTEXTS,
  version: PRINTS_LOCALLY,
  completion: PRINTS_LOCALLY,
  demo: {
    done: "stopped with Ctrl-C; with crash, freeze or start: done",
    failed: "a part could not start, or no demo runs in the directory, or it has no such machine",
  },
  up: SERVES,
  serve: SERVES,
  migrate: { done: "the schema is that of this release", failed: "the database could not be reached or migrated" },
  backup: {
    done: "the archive was written, or is intact",
    failed: "the archive is incomplete, or could not be written",
  },
  restore: { done: "everything is restored", failed: "nothing was restored" },
  agent: SERVES,
  keeper: SERVES,
};
