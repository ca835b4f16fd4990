import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, errorCode, type Logger, processStart } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { listenArguments } from "./place.ts";
import { inspectProcess, readPostmasterFile } from "./postmaster.ts";
import { askServer, type ServerAddress } from "./probe.ts";
import type { Binaries } from "./programs.ts";
import { commandAs, type RunAs } from "./run-as.ts";

export interface LaunchOptions extends ServerAddress {
  readonly dir: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly clock: Clock;
  /** Called with the process id before the server starts, because the server must not run without a watcher. */
  readonly onSpawned: (pid: number) => void;
}

/**
 * A server that this process started. It does not keep this process running, except while something waits for its exit.
 */
export interface LaunchedServer {
  readonly child: ChildProcess;
  /** Resolves when the server has exited, with a description of how it ended. */
  readonly ended: Promise<string>;
}

// A shell script that waits for input before it becomes the server, so that no server starts if the launcher dies
// first.
const GATE = 'read -r go && exec "$@" </dev/null';
const READY_POLL_MS = 20;
const MAX_LOG_BYTES = 10 * 1024 * 1024;
const TAIL_BYTES = 2_000;

/** The name of a custom setting on the server's command line. Postgres stores the setting but does not use it. */
const SETTING = "rollcall.launcher";

/**
 * Start a server in a separate process group, and wait until it responds.
 *
 * @throws EmbeddedPostgresError with the end of the server's log when the server exits instead; the signal's reason
 *   when the signal aborts, after stopping the server.
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
        throw new EmbeddedPostgresError(`Postgres exited (${endedHow}) while starting: ${await logTail(options.dir)}`, {
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

/** Shut down fast. Resolves when the server has exited. */
export async function interrupt({ child, ended }: LaunchedServer): Promise<void> {
  // Signal by process id, which is still valid, because the child has not been reaped.
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
    // Detach the child, so that an interrupt from the terminal reaches only the supervisor, which then stops the
    // server.
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
    // Ignore the error: a process that has exited reads nothing, and `ended` reports its exit.
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
  // Check the size only at the start, because the log contains only warnings and takes years to fill.
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

/** The log file of a directory's server. */
export function logPath(dir: string): string {
  return join(dir, "postgres.log");
}

const STOP_DEADLINE_MS = 60_000;
const POLL_MS = 25;

/**
 * Run a fast shutdown of a server that is not a child of this process. Resolves when the server has exited.
 *
 * @param pid the id of a process that is known to be this data directory's server.
 */
export async function stopServer(
  pid: number,
  options: { readonly dataDirectory: string; readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const { clock, dataDirectory, log } = options;
  const deadlineMs = clock.nowMs() + STOP_DEADLINE_MS;
  // Wait with a signal that never aborts, because this wait is part of the shutdown itself.
  const { signal } = new AbortController();
  try {
    process.kill(pid, "SIGINT");
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
  while ((await inspectProcess(pid, dataDirectory)) === "postmaster") {
    if (clock.nowMs() >= deadlineMs) {
      log.error({ pid }, "postgres does not stop");
      throw new EmbeddedPostgresError(`Postgres (process ${pid}) does not stop`);
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** The server argument that identifies the process that launched it. */
export async function launcherArgument(): Promise<string> {
  return `${SETTING}=${process.pid}.${await began(process.pid)}`;
}

/**
 * Whether the process that launched a server is still running, according to the server's command line. Also false if
 * the command line lacks the argument, because an older version or a person started the server.
 */
export async function launcherRuns(args: readonly string[]): Promise<boolean> {
  const named = args.find((arg) => arg.startsWith(`${SETTING}=`))?.slice(SETTING.length + 1);
  if (named === undefined) return false;
  const pid = Number(named.split(".")[0]);
  return Number.isInteger(pid) && pid > 0 && named === `${pid}.${await began(pid)}`;
}

/** The start time of a process, without spaces, because spaces can separate the words of a command line. */
async function began(pid: number): Promise<string> {
  return ((await processStart(pid)) ?? "").replaceAll(/[^\w]/g, "_");
}
