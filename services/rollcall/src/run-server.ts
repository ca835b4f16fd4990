import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Logger, type RunOptions, runProcess } from "@rollcall/process";
import { hasTerminal } from "./has-terminal.ts";

/** Options of runProcess, and the environment with systemd's notification socket. */
export interface RunServerOptions extends RunOptions {
  readonly process: RunOptions["process"] & { readonly env: Record<string, string | undefined> };
}

/** Run a server like runProcess(), and notify systemd when the start is complete, if systemd started it. */
export function runServer(given: RunServerOptions): Promise<number> {
  const options = { hasTerminal: hasTerminal(), ...given };
  const socket = takeNotifySocket(options.process.env);
  if (socket === null) return runProcess(options);
  return runProcess({
    ...options,
    start: async (signal) => {
      const running = await options.start(signal);
      await notifyReady(socket, options);
      return running;
    },
  });
}

/**
 * Take systemd's notification socket out of the environment, because child processes can also be servers.
 */
function takeNotifySocket(env: Record<string, string | undefined>): string | null {
  const { NOTIFY_SOCKET: socket } = env;
  delete env.NOTIFY_SOCKET;
  return socket === undefined || socket === "" ? null : socket;
}

const LIMIT_MS = 10_000;

/**
 * Notify systemd that startup is complete. Node.js cannot open datagram sockets, so systemd-notify sends the
 * notification; the unit needs NotifyAccess=all.
 */
async function notifyReady(
  socket: string,
  { process: { env }, log }: { readonly process: RunServerOptions["process"]; readonly log: Logger },
): Promise<void> {
  const run = promisify(execFile);
  try {
    await run("systemd-notify", ["--ready"], { env: { ...env, NOTIFY_SOCKET: socket }, timeout: LIMIT_MS });
  } catch (error) {
    // Continue. The server works until systemd ends it because no notification arrived in time.
    log.error({ err: error }, "cannot notify systemd that startup is complete");
  }
}
