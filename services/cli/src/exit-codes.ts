/** Exit codes of every command. */
export const DONE = 0;
export const FAILED = 1;
export const MISUSED = 2;
export const INTERRUPTED = 130;

/** What the exit codes of a command mean. Codes 2 and 130 mean the same for every command, and are not repeated. */
export interface ExitCodes {
  readonly done: string;
  readonly failed: string;
  /** Codes that only this command has. */
  readonly others?: Readonly<Record<string, string>>;
}

const UNREACHABLE = "the control plane refused, or could not be reached";

const PRINTS: ExitCodes = { done: "printed", failed: UNREACHABLE };
const CHANGES: ExitCodes = {
  done: "changed, or there was nothing to change",
  failed: `nothing was changed: ${UNREACHABLE}; with --strict also: there was nothing to change`,
};
const CHANGES_NODES: ExitCodes = {
  done: "every node was changed, or there was nothing to change",
  failed: `at least one node was refused, the question was answered with no, or ${UNREACHABLE}`,
};
const CHANGES_ONE: ExitCodes = { done: "changed", failed: `nothing was changed: ${UNREACHABLE}` };
const PRINTS_LOCALLY: ExitCodes = { done: "printed", failed: "the output could not be written" };
const NO_CONTEXT = "there is no such context, or the file of contexts cannot be read or written";
const OF_CONTEXTS: ExitCodes = { done: "done", failed: NO_CONTEXT };
const JOB_RESULT: ExitCodes = {
  done: "every job is ready (services, daemons) or has completed (batch, ops)",
  failed: `a job failed, was stopped or replaced by another version, its update halted, or ${UNREACHABLE}`,
};
const SERVES: ExitCodes = { done: "stopped by SIGTERM or SIGINT", failed: "could not start, or had to give up" };

/** The exit codes of each command by its words, `rollcall` left out. A test compares them with the tree of commands. */
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
  "node drain": {
    done: "every node is drained; with --detach: every drain is ordered",
    failed: `at least one node was refused, a drain was cancelled, or ${UNREACHABLE}`,
  },
  "node label": CHANGES_NODES,
  "node bans": PRINTS,
  "node why": PRINTS,
  "node health": PRINTS,
  "node watch": { done: "ended by --count", failed: UNREACHABLE },
  "node summary": PRINTS,
  "job run": {
    ...JOB_RESULT,
    done: `${JOB_RESULT.done}; with --detach: every job is accepted; with --dry-run: every job would be accepted`,
    failed: `a job was refused, or would be with --dry-run; ${JOB_RESULT.failed}`,
  },
  "job wait": JOB_RESULT,
  "job list": PRINTS,
  "job executions": PRINTS,
  "job history": PRINTS,
  "job owners": PRINTS,
  "job describe": PRINTS,
  "job why": PRINTS,
  "job logs": {
    done: "printed to the end, from the oldest output that is kept",
    failed: `the output of an execution cannot be read, or some of it was removed while it was read, or ${UNREACHABLE}`,
  },
  "job stop": {
    done: "every job is stopped, or had ended; with --wait: all of their executions have ended",
    failed:
      `at least one job was refused, the question was answered with no, or ${UNREACHABLE}; with --wait also: a job ` +
      "was started again; with --strict also: there was nothing to change",
  },
  "job delete": {
    done: "every job is deleted",
    failed: `at least one job was refused, the question was answered with no, or ${UNREACHABLE}`,
  },
  "job scale": CHANGES,
  "job restart": CHANGES,
  "job revert": {
    done: `the job is reverted, and ${JOB_RESULT.done}; with --detach: the new version is accepted`,
    failed: `the revert was refused; ${JOB_RESULT.failed}`,
  },
  "job adopt": CHANGES,
  run: {
    done: "the command exited with 0; with --detach: the job is accepted",
    failed: "the command exited with 1",
    others: {
      "1 to 255": "the command's own exit code, or 128 and the number of the signal that ended it",
      "75":
        "the exit code is unknown: the command did not run, was ended from outside and exited with 0, its node was " +
        "lost, or the control plane is unreachable; " +
        "or the command succeeded and its output could not be read or written in full, as where it is no longer " +
        "kept; with --detach: the job is " +
        "accepted and its name could not be written",
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
  "brake freeze": CHANGES_ONE,
  "brake release": CHANGES_ONE,
  events: { ...PRINTS, done: "printed; with --follow: ended by --limit" },
  "events republish": CHANGES_ONE,
  "webhook set": CHANGES_ONE,
  "webhook list": PRINTS,
  "webhook show": PRINTS,
  "webhook test": { done: "the receiver took the event", failed: `the event was not delivered, or ${UNREACHABLE}` },
  "webhook replay": CHANGES_ONE,
  "webhook delete": CHANGES_ONE,
  apply: {
    done: "everything is as the files declare it; with --dry-run: the files would be accepted",
    failed: `nothing was changed: the files were refused, or would be with --dry-run, or ${UNREACHABLE}`,
  },
  diff: {
    done: "nothing differs",
    failed: "something differs",
    others: { "3": `could not compare: ${UNREACHABLE}; or nothing differs, and the output could not be written` },
  },
  export: PRINTS,
  "audit list": PRINTS,
  "audit verify": {
    done: "the log is intact",
    failed: "the log is not intact",
    others: { "3": `could not be verified: ${UNREACHABLE}; or it is intact, and the output could not be written` },
  },
  "audit export": { done: "everything was written", failed: `could not be read or written whole, or ${UNREACHABLE}` },
  "audit prune": CHANGES_ONE,
  status: PRINTS,
  doctor: {
    done: "no problem, warnings or not",
    failed: "at least one problem",
    others: { "3": "no problem was found, but not everything could be checked, or doctor itself failed" },
  },
  "config list": { done: "printed", failed: "printed, and some values contradict each other" },
  "config convert": PRINTS_LOCALLY,
  "config default": PRINTS_LOCALLY,
  login: { done: "the context is saved", failed: `the token was refused, or ${UNREACHABLE}` },
  logout: { done: "the context has no token anymore", failed: `${NO_CONTEXT}; with --revoke also: ${UNREACHABLE}` },
  whoami: PRINTS,
  console: { done: "signed in, or the address is printed", failed: `nobody signed in in time, or ${UNREACHABLE}` },
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
  up: SERVES,
  serve: SERVES,
  migrate: { done: "the schema is this release's", failed: "the database refused, or could not be reached" },
  backup: { done: "the archive is written, or intact", failed: "the archive is not whole, or could not be made" },
  restore: { done: "everything is restored", failed: "nothing was restored" },
  agent: SERVES,
  keeper: SERVES,
};
