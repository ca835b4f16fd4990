import type { Clock, Logger } from "@rollcall/process";
import { EmbeddedPostgresError } from "./errors.ts";
import { isErrno } from "./files.ts";
import { inspectProcess } from "./postmaster.ts";

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
