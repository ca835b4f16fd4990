import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
/** A machine that boots is slow. */
const LIMIT_MS = 15_000;
const MOST_TRIES = 3;

/** What keeps executions apart on this machine. */
export interface Isolation {
  /** Options by which setpriv gives up privileges; empty where there is no setpriv. */
  readonly privileges: readonly string[];
  /** Whether processes can be started in PID, mount and IPC namespaces. */
  readonly hasNamespaces: boolean;
  /** What is not possible here and why, for people; empty when everything is. */
  readonly problem: string;
}

/** The namespaces of an execution with a user id of its own. */
export const NAMESPACES = ["pid", "mount", "ipc"] as const;

/** Options that give up the keeper's privileges for good, the most complete first. */
const PRIVILEGES: readonly (readonly string[])[] = [
  ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"],
  // Without CAP_SETPCAP, as in some containers, and for users other than root. With no-new-privs no program gains any.
  ["--no-new-privs", "--inh-caps=-all"],
];

/**
 * The words that start a command as the first process of new namespaces. It ends when unshare does.
 *
 * @param isPrivate whether it has IPC objects of its own as well.
 */
export function unsharing(isPrivate: boolean): readonly string[] {
  const names = ["--pid", "--mount", ...(isPrivate ? ["--ipc"] : [])];
  // Mounts that the machine makes later are seen inside, and none that is made inside is seen outside.
  return ["unshare", ...names, "--propagation", "slave", "--fork", "--kill-child"];
}

/** The words that run a command in the namespaces of a process. */
export function entering(pid: number, isPrivate: boolean): readonly string[] {
  return ["nsenter", `--target=${pid}`, "--pid", "--mount", ...(isPrivate ? ["--ipc"] : [])];
}

/** What is mounted in the namespaces of an execution, tried without one. */
const TRY_MOUNTS =
  "mount -n -t proc -o nosuid,nodev,noexec proc /proc && mount -n -t tmpfs tmpfs /tmp && mount -n -o rbind / /tmp";

/** Try out what this machine allows. */
export async function probeIsolation(): Promise<Isolation> {
  const privileges = await firstThatWorks(PRIVILEGES);
  const tried = await tryRun([...unsharing(true), "sh", "-c", TRY_MOUNTS]);
  const problems = [
    ...(privileges === null ? ["setpriv of util-linux is missing: executions can gain privileges"] : []),
    ...(tried === "" ? [] : [`no namespaces can be made (${tried})`]),
  ];
  return { privileges: privileges ?? [], hasNamespaces: tried === "", problem: problems.join("; ") };
}

async function firstThatWorks(options: readonly (readonly string[])[]): Promise<readonly string[] | null> {
  for (const words of options) if ((await tryRun(["setpriv", ...words, "true"])) === "") return words;
  return null;
}

const MOST_PROBLEM = 200;

interface RunError {
  readonly stderr?: string;
  readonly message: string;
  readonly code?: number | string | null;
}

/**
 * Why a command does not end well; empty when it does. One that did not end by itself, or could not be started for lack
 * of something, is tried again: what is found here lasts as long as the keeper.
 */
async function tryRun([program = "", ...args]: readonly string[]): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    const error = await run(program, args, { timeout: LIMIT_MS }).then(
      () => null,
      (failure: RunError) => failure,
    );
    if (error === null) return "";
    const hasAnswered = typeof error.code === "number" || error.code === "ENOENT" || error.code === "EACCES";
    if (hasAnswered || tries === MOST_TRIES) {
      const [line = ""] = (error.stderr ?? "").trim().split("\n");
      return (line === "" ? error.message : line).slice(0, MOST_PROBLEM);
    }
  }
}
