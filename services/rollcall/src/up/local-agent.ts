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

/** The message that an agent sends to its parent `up` when it has a session. */
export const CONNECTED = "connected";

export interface LocalAgentOptions {
  /** `up` starts the agent with this command. */
  readonly command: CommandLine;
  /** The command for a user to start it, for the log. */
  readonly commandForPeople: string;
  readonly stateDirectory: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Random numbers in [0, 1), for jitter. */
  readonly random: () => number;
  /** Called whenever the agent gets a session. */
  readonly onConnected?: () => void;
}

/**
 * How long a goodbye can take before the agent is killed. The agent waits up to 5 s for the server to accept the
 * goodbye.
 */
const GOODBYE_MS = 7000;

/**
 * Run this machine's agent as a child process until the signal aborts, and then let it say goodbye. An agent that
 * crashes or is killed is restarted. An agent that is stopped stays stopped, and the log says how to start it.
 */
export async function keepLocalAgent(options: LocalAgentOptions, signal: AbortSignal): Promise<void> {
  const { log, clock, random, stateDirectory, commandForPeople } = options;
  let crashes = 0;
  while (!signal.aborted) {
    const other = await runningAgent(stateDirectory);
    if (other !== null) {
      log.info({ pid: other, state_dir: stateDirectory }, "an agent is already running; leaving it unchanged");
      return;
    }
    const startedMs = clock.nowMs();
    const exit = await runOnce(options, signal);
    if (signal.aborted) return;
    const next = decideAfterExit({ ...exit, crashes, ranMs: clock.nowMs() - startedMs }, random());
    if (next.kind === "stay-down") {
      log.warn({ ...exit, command: commandForPeople }, "the local agent exited; restart it with this command");
      return;
    }
    crashes = next.crashes;
    log.error({ ...exit, pause_ms: next.pauseMs }, "the local agent crashed; restarting it");
    // Ignore the rejection, because sleep() rejects only when the signal aborts, which the loop's condition
    // checks next.
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
    // Open a channel, which closes when `up` ends for any reason, and so notifies the agent.
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Start a separate process group, because Ctrl-C goes to the whole group of the terminal, and the agent must
    // get the signal only from `up`, once and in order.
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
    // Log the error, because the agent did not start.
    log.error({ err: error }, "cannot start the local agent");
    return { code: 1, signal: null };
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function endChild(child: ChildProcess, log: Logger): void {
  child.kill("SIGTERM");
  const timer = setTimeout(() => {
    log.warn({ pid: child.pid }, "the local agent did not exit in time; killing it");
    child.kill("SIGKILL");
  }, GOODBYE_MS);
  child.once("exit", () => clearTimeout(timer));
}
