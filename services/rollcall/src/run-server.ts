import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Logger, type RunOptions, runProcess } from "@rollcall/process";
import { hasTerminal } from "./has-terminal.ts";

/** How runProcess runs, and the environment in which systemd says where it listens. */
export interface RunServerOptions extends RunOptions {
  readonly process: RunOptions["process"] & { readonly env: Record<string, string | undefined> };
}

/** Run a server as runProcess() does, and tell systemd, when it started this process, that the start is done. */
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

/** Where systemd listens. Children, of which some start servers as well, must not find it. */
function takeNotifySocket(env: Record<string, string | undefined>): string | null {
  const { NOTIFY_SOCKET: socket } = env;
  delete env.NOTIFY_SOCKET;
  return socket === undefined || socket === "" ? null : socket;
}

const LIMIT_MS = 10_000;

/** Node opens no datagram sockets, so systemd's own program sends the word; the unit needs NotifyAccess=all. */
async function notifyReady(
  socket: string,
  { process: { env }, log }: { readonly process: RunServerOptions["process"]; readonly log: Logger },
): Promise<void> {
  const run = promisify(execFile);
  try {
    await run("systemd-notify", ["--ready"], { env: { ...env, NOTIFY_SOCKET: socket }, timeout: LIMIT_MS });
  } catch (error) {
    // systemd ends the process when its word does not come in time; until then it works.
    log.error({ err: error }, "systemd cannot be told that the start is done");
  }
}
