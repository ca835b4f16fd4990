import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock, Logger } from "@rollcall/process";
import { decideAfterExit } from "./after-exit.ts";
import { runningAgent } from "./directory-lock.ts";

/** A program to start, with its arguments. */
interface CommandLine {
  readonly program: string;
  readonly args: readonly string[];
}

/** What an agent sends over its channel to the `up` that has started it, once it has a session. */
export const CONNECTED = "connected";

/** What the local agent needs. */
export interface LocalAgentOptions {
  /** How `up` starts it. */
  readonly command: CommandLine;
  /** How a person starts it, for the log. */
  readonly commandForPeople: string;
  readonly stateDirectory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Numbers from 0 to less than 1, for jitter. */
  readonly random: () => number;
  /** Told whenever it has a session. */
  readonly onConnected?: () => void;
}

/** How long a goodbye may take before the agent is killed: it waits at most 5 s for the server to take it. */
const GOODBYE_MS = 7000;

/**
 * Run the agent of this machine as a child process until the signal aborts, and let it say goodbye then. One that
 * crashes or is killed is started again; one that is stopped stays down, and the log says how to start it.
 */
export async function keepLocalAgent(options: LocalAgentOptions, signal: AbortSignal): Promise<void> {
  const { log, clock, random, stateDirectory, commandForPeople } = options;
  let crashes = 0;
  while (!signal.aborted) {
    const other = await runningAgent(stateDirectory);
    if (other !== null) {
      log.info({ pid: other, state_dir: stateDirectory }, "an agent runs already, left as it is");
      return;
    }
    const startedMs = clock.nowMs();
    const exit = await runOnce(options, signal);
    if (signal.aborted) return;
    const next = decideAfterExit({ ...exit, crashes, ranMs: clock.nowMs() - startedMs }, random());
    if (next.kind === "stay-down") {
      log.warn({ ...exit, command: commandForPeople }, "the local agent ended, start it again with this command");
      return;
    }
    crashes = next.crashes;
    log.error({ ...exit, pause_ms: next.pauseMs }, "the local agent crashed, starting it again");
    // Rejects only when the signal aborts, which the loop's condition sees next.
    await clock.sleep(next.pauseMs, signal).catch(() => {});
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

async function runOnce(options: LocalAgentOptions, signal: AbortSignal): Promise<Exit> {
  const { command, env, log } = options;
  const child = spawn(command.program, command.args, {
    env,
    // The channel tells the agent when `up` is gone, however it went.
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Ctrl-C goes to the whole group of a terminal: the agent must hear it from `up` alone, once, and in its turn.
    detached: true,
  });
  const exited = once(child, "exit");
  child.on("message", (message) => {
    if (message === CONNECTED) options.onConnected?.();
  });
  log.info({ pid: child.pid }, "local agent started");
  const onAbort = () => endChild(child, log);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const [code, by] = await exited;
    return { code, signal: by };
  } catch (error) {
    // It could not be started at all.
    log.error({ err: error }, "the local agent cannot be started");
    return { code: 1, signal: null };
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function endChild(child: ChildProcess, log: Logger): void {
  child.kill("SIGTERM");
  const timer = setTimeout(() => {
    log.warn({ pid: child.pid }, "the local agent did not end, killing it");
    child.kill("SIGKILL");
  }, GOODBYE_MS);
  child.once("exit", () => clearTimeout(timer));
}
