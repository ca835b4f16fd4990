import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
/** The time limit of a test, in milliseconds. A machine is slow while it boots. */
const LIMIT_MS = 15_000;
const MOST_TRIES = 3;

/** The isolation that this machine supports. */
export interface Isolation {
  /** setpriv options that drop privileges; empty without setpriv. */
  readonly privileges: readonly string[];
  /** Whether processes can be started in PID, mount and IPC namespaces. */
  readonly hasNamespaces: boolean;
  /** Which isolation is impossible on this machine and why, human-readable. Empty if everything is possible. */
  readonly problem: string;
}

/** The namespaces of an execution with its own user id. */
export const NAMESPACES = ["pid", "mount", "ipc"] as const;

/** Options that permanently drop the keeper's privileges. The most complete ones come first. */
const PRIVILEGES: readonly (readonly string[])[] = [
  ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"],
  // For users other than root, and for root without CAP_SETPCAP, as in some containers. With no-new-privs, no program
  // gains capabilities.
  ["--no-new-privs", "--inh-caps=-all"],
];

/**
 * The words that start a command as the first process of new namespaces. The command ends when unshare ends.
 *
 * @param isPrivate whether the command also gets its own IPC namespace.
 */
export function unsharing(isPrivate: boolean): readonly string[] {
  const names = ["--pid", "--mount", ...(isPrivate ? ["--ipc"] : [])];
  // Use slave propagation, so that mounts that the machine makes later are visible inside the namespace, but mounts
  // made inside are not visible outside.
  return ["unshare", ...names, "--propagation", "slave", "--fork", "--kill-child"];
}

/** The words that run a command in the namespaces of a process. */
export function entering(pid: number, isPrivate: boolean): readonly string[] {
  return ["nsenter", `--target=${pid}`, "--pid", "--mount", ...(isPrivate ? ["--ipc"] : [])];
}

/** A script that makes the same mounts as an execution with namespaces, to test whether this machine allows them. */
const TRY_MOUNTS =
  "mount -n -t proc -o nosuid,nodev,noexec proc /proc && mount -n -t tmpfs tmpfs /tmp && mount -n -o rbind / /tmp";

/** Find out which isolation this machine allows. */
export async function probeIsolation(): Promise<Isolation> {
  const privileges = await firstThatWorks(PRIVILEGES);
  const tried = await tryRun([...unsharing(true), "sh", "-c", TRY_MOUNTS]);
  const problems = [
    ...(privileges === null ? ["setpriv of util-linux is missing: executions can gain privileges"] : []),
    ...(tried === "" ? [] : [`cannot create namespaces (${tried})`]),
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
 * Why a command fails; empty if it succeeds. A command that times out, or cannot be started for lack of resources, is
 * tried again, because the result is used as long as the keeper runs.
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
