import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Logger, processStart } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { isErrno } from "./files.ts";
import { listenArguments } from "./place.ts";
import { inspectProcess, readPostmasterFile } from "./postmaster.ts";
import { askServer, type ServerAddress } from "./probe.ts";
import type { Binaries } from "./programs.ts";
import { commandAs, type RunAs } from "./run-as.ts";

/** What is needed to start a server. */
export interface LaunchOptions extends ServerAddress {
  readonly dir: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly clock: Clock;
  /** Told the process id before the server begins: it must not run without a watcher. */
  readonly onSpawned: (pid: number) => void;
}

/**
 * A server that this process started. It does not keep this process alive, but for as long as its end is waited for.
 */
export interface LaunchedServer {
  readonly child: ChildProcess;
  /** Settles when the server has ended, with how. */
  readonly ended: Promise<string>;
}

// The process waits for a word before it becomes the server: when the one that launches it ends in between, there is
// none.
const GATE = 'read -r go && exec "$@" </dev/null';
const READY_POLL_MS = 20;
const MAX_LOG_BYTES = 10 * 1024 * 1024;
const TAIL_BYTES = 2_000;

/** A setting of ours on a server's command line, which Postgres keeps and ignores. */
const SETTING = "rollcall.launcher";

/**
 * Start a server in a process group of its own and wait until it answers.
 *
 * @throws EmbeddedPostgresError with the end of its log when it ends instead; the signal's reason when that aborts,
 * after
 *   the server was told to stop.
 */
export async function launch(options: LaunchOptions, signal: AbortSignal): Promise<LaunchedServer> {
  const server = await spawnServer(options);
  let endedHow: string | undefined;
  void server.ended.then((how) => {
    endedHow = how;
  });
  try {
    while (!(await isReady(options, server.child))) {
      if (endedHow !== undefined) {
        throw new EmbeddedPostgresError(`Postgres ended (${endedHow}) while starting: ${await logTail(options.dir)}`, {
          failure: "passing",
        });
      }
      await options.clock.sleep(READY_POLL_MS, signal);
    }
    return server;
  } catch (error) {
    await interrupt(server);
    throw error;
  }
}

/** Fast shutdown; resolves when the server has ended. */
export async function interrupt({ child, ended }: LaunchedServer): Promise<void> {
  // Its own child, not waited for yet: the process id cannot be another process's yet.
  child.ref();
  child.kill("SIGINT");
  await ended;
}

async function isReady(address: ServerAddress, child: ChildProcess): Promise<boolean> {
  const file = await readPostmasterFile(address.dataDirectory);
  if (file === null || file.pid !== child.pid || file.status !== "ready") return false;
  return (await askServer(address)) === "ours";
}

async function spawnServer(options: LaunchOptions): Promise<LaunchedServer> {
  const {
    command,
    args,
    options: user,
  } = commandAs(options.runAs, options.binaries.postgres, [
    "-D",
    options.dataDirectory,
    ...listenArguments(options),
    "-c",
    await launcherArgument(),
  ]);
  const log = await openLog(options.dir);
  try {
    // Detached: an interrupt from the terminal is for the supervisor, which then stops the server in its own time.
    const child = spawn("/bin/sh", ["-c", GATE, "sh", command, ...args], {
      ...user,
      detached: true,
      stdio: ["pipe", log.fd, log.fd],
      cwd: "/",
    });
    const ended = Promise.race([
      once(child, "exit").then(([code, by]) => (by === null ? `exit code ${code}` : `${by}`)),
      once(child, "error").then(([error]) => String(error)),
    ]).catch((error: unknown) => String(error));
    child.unref();
    // A process that has ended reads nothing; the promise reports its end.
    child.stdin?.on("error", () => {});
    if (child.pid !== undefined) options.onSpawned(child.pid);
    child.stdin?.end("go\n");
    return { child, ended };
  } finally {
    await log.close();
  }
}

async function openLog(dir: string) {
  const path = logPath(dir);
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  );
  // Looked at on each start only: at the level of warnings it takes years to fill.
  if (size > MAX_LOG_BYTES) await rename(path, `${path}.1`);
  return open(path, "a", 0o600);
}

async function logTail(dir: string): Promise<string> {
  const file = await open(logPath(dir), "r");
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString("utf8", 0, bytesRead).trim().split("\n").slice(-5).join(" | ");
  } finally {
    await file.close();
  }
}

/** Where the server of a directory writes what it has to say. */
export function logPath(dir: string): string {
  return join(dir, "postgres.log");
}

const STOP_DEADLINE_MS = 60_000;
const POLL_MS = 25;

/**
 * Fast shutdown of a server that is no child of this process; resolves when it has ended.
 *
 * @param pid of a process that is known to be this data directory's server.
 */
export async function stopServer(
  pid: number,
  options: { readonly dataDirectory: string; readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const { clock, dataDirectory, log } = options;
  const deadlineMs = clock.nowMs() + STOP_DEADLINE_MS;
  // The reason would be that of the end itself, which is what is waited for here.
  const { signal } = new AbortController();
  try {
    process.kill(pid, "SIGINT");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
  while ((await inspectProcess(pid, dataDirectory)) === "postmaster") {
    if (clock.nowMs() >= deadlineMs) {
      log.error({ pid }, "postgres does not stop");
      throw new EmbeddedPostgresError(`Postgres (process ${pid}) does not stop`);
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** The argument by which a server names the process that launched it. */
export async function launcherArgument(): Promise<string> {
  return `${SETTING}=${process.pid}.${await began(process.pid)}`;
}

/**
 * Whether the process that launched a server still runs, by the server's command line. False also for a server without
 * the argument: one that was started by hand, or by an older version.
 */
export async function launcherRuns(args: readonly string[]): Promise<boolean> {
  const named = args.find((arg) => arg.startsWith(`${SETTING}=`))?.slice(SETTING.length + 1);
  if (named === undefined) return false;
  const pid = Number(named.split(".")[0]);
  return Number.isInteger(pid) && pid > 0 && named === `${pid}.${await began(pid)}`;
}

/** Without spaces, which may have to separate the words of a command line. */
async function began(pid: number): Promise<string> {
  return ((await processStart(pid)) ?? "").replaceAll(/[^\w]/g, "_");
}
