import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { open, readFile, rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorCode } from "@rollcall/process";
import { isAlive, type ProcessName, parseStat } from "../machine/process-name.ts";
import { SHIM_SCRIPT } from "./launch-script.ts";
import { parseExit, type ShimFacts } from "./shim-facts.ts";

export interface ShimStart {
  /** The execution's directory, with its program and an empty `run`. */
  readonly directory: string;
  /** The group that can write to the output pipes; null if only the keeper's user can. */
  readonly groupId: number | null;
  /** See becoming(). */
  readonly becoming: readonly string[];
  /** The cgroup directories that the program enters. */
  readonly cgroups: readonly string[];
  /** The namespaces that the program runs in; null for the machine's. */
  readonly namespaces: ShimNamespaces | null;
}

/** The namespaces of an execution. */
export interface ShimNamespaces {
  /** See unsharing(). */
  readonly unsharing: readonly string[];
  /** The mounts, as source and target. A source is relative to the execution's directory, or the word tmpfs. */
  readonly mounts: readonly (readonly [from: string, to: string])[];
}

const SHELLS = ["/bin/dash", "/usr/bin/dash", "/bin/sh"] as const;

/** Start the shim of an execution. It keeps running when this process exits. */
export async function startShim(start: ShimStart): Promise<void> {
  const { directory, groupId, becoming, cgroups, namespaces } = start;
  const [program, file] = [await shell(), await shimFile(dirname(directory))];
  const inside =
    namespaces === null ? [] : [...namespaces.unsharing, program, file, "--inside", ...namespaces.mounts.flat(), "--"];
  const kind = namespaces === null ? "plain" : "namespaces";
  const words = [...inside, "setsid", ...becoming];
  const args = [file, directory, groupId === null ? "" : String(groupId), kind, ...cgroups, "--", ...words];
  const child = spawn(program, args, {
    cwd: directory,
    detached: true,
    stdio: "ignore",
    // Do not set the job's variables, because the loader obeys LD_PRELOAD. A process of the job's user sets them
    // later.
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  child.unref();
}

/**
 * Read what a shim has recorded so far, and which of its processes run. Rejects when that cannot be read, for example
 * for lack of descriptors, because an error must not look like an exit.
 */
export async function readShim(directory: string): Promise<ShimFacts> {
  const read = (name: string): Promise<string | null> =>
    readFile(join(directory, "run", name), "utf8").then(
      // Ignore a file without its final newline, because it is still being written.
      (text) => (text.endsWith("\n") ? text : null),
      (error: unknown) => absent(error, null),
    );
  // Read the exit first. The exit is written last, so if it exists, everything read afterwards is final.
  const exit = await read("exit");
  const [shim, child, status, hasStarted] = await Promise.all([
    read("shim"),
    read("child"),
    read("status"),
    stat(join(directory, "run", "started")).then(
      () => true,
      (error: unknown) => absent(error, false),
    ),
  ]);
  const childName = nameOf(child);
  const facts: ShimFacts = {
    hasStarted,
    shim: await lifeOf(nameOf(shim)),
    child: childName,
    childLife: await lifeOf(childName),
    status: (status ?? "").trim(),
    exit: exit === null ? null : parseExit(exit),
  };
  // Read the exit again, because a shim that is gone may have recorded it after the first read.
  const isOver = facts.exit === null && facts.shim === "dead" && (await read("exit")) !== null;
  return isOver ? readShim(directory) : facts;
}

/**
 * The first process of the execution's namespaces while it runs. When it ends, all other processes in them also end.
 */
export async function readInit(directory: string): Promise<ProcessName | null> {
  const name = nameOf(
    await readFile(join(directory, "run", "init"), "utf8").catch((error: unknown) => absent(error, null)),
  );
  return name !== null && (await isAlive(name)) ? name : null;
}

/** When the exit was recorded, in wall time. */
export async function exitWallMs(directory: string): Promise<number | null> {
  return stat(join(directory, "run", "exit")).then(
    ({ mtimeMs }) => Math.trunc(mtimeMs),
    () => null,
  );
}

/** Release a shim that has recorded the exit. */
export async function releaseShim(directory: string): Promise<void> {
  try {
    const pipe = await open(join(directory, "seen.pipe"), constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      await pipe.write("seen\n");
    } finally {
      await pipe.close();
    }
  } catch {
    // Ignore the error. The shim is gone, so there is nothing to acknowledge.
  }
}

/** Return the value if the error means that the file does not exist; otherwise throw the error. */
function absent<T>(error: unknown, value: T): T {
  if (errorCode(error) === "ENOENT") return value;
  throw error;
}

function nameOf(line: string | null): ProcessName | null {
  const parsed = line === null ? null : parseStat(line);
  return parsed === null ? null : { pid: parsed.pid, start: parsed.start };
}

async function lifeOf(name: ProcessName | null): Promise<"alive" | "dead" | "unknown"> {
  if (name === null) return "unknown";
  return (await isAlive(name)) ? "alive" : "dead";
}

/**
 * The path of the script's file, which is created if it is missing. The name contains a digest of the content, so that
 * the file of a running shell never changes, because a shell may continue to read the file at any time.
 */
async function shimFile(directory: string): Promise<string> {
  const digest = createHash("sha256").update(SHIM_SCRIPT).digest("hex").slice(0, 12);
  const path = join(directory, `rollcall-execution.${digest}.sh`);
  if (await isFile(path)) return path;
  const draft = `${path}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, SHIM_SCRIPT, { mode: 0o600 });
  await rename(draft, path);
  return path;
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function shell(): Promise<string> {
  for (const path of SHELLS) {
    if (await isFile(path)) return path;
  }
  return "/bin/sh";
}
