import { closeSync, openSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";
import type { Logger } from "./logging.ts";
import { counter, type MetricsRegistry } from "./metrics.ts";
import { Loop, type Task } from "./tasks.ts";

/**
 * How many files and sockets this process may hold open, as `ulimit -n` says; null when nothing limits them, or it
 * cannot be known.
 */
export function openFilesLimit(): number | null {
  try {
    return parseLimit(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    // Not every platform has it.
  }
  return reportedLimit();
}

/** The soft limit of open files in the text of /proc/self/limits. Node.js raises it to the hard one as it starts. */
export function parseLimit(text: string): number | null {
  const soft = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  return soft === undefined || soft === "unlimited" ? null : Number(soft);
}

function reportedLimit(): number | null {
  const report: unknown = process.report?.getReport();
  const limits = (report as { userLimits?: { open_files?: { soft?: unknown } } } | undefined)?.userLimits;
  const soft = Number(limits?.open_files?.soft);
  return Number.isFinite(soft) && soft > 0 ? soft : null;
}

const EVERY_MS = 1_000;
const SAY_EVERY_MS = 60_000;
/** Of each port at a time: enough for probes, the record and some callers. */
const SPARED_AT_ONCE = 64;

/** What holds connections, and can end some that do nothing. */
export interface SparingServer {
  /** End connections without a call, `most` of each kind; how many. */
  spare(most: number): number;
}

export interface OpenFilesWatchOptions {
  readonly servers: readonly SparingServer[];
  /** See openFilesLimit(). */
  readonly limit: number | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Throws when the process can open nothing more; for tests. */
  readonly probe?: () => void;
}

/**
 * Notices that the process has no descriptors left, and ends connections that do nothing until it has. Nothing else
 * notices: libuv then closes new connections without telling Node.js.
 */
export function watchOpenFiles(options: OpenFilesWatchOptions): Task {
  const { servers, limit, clock, log, metrics, probe = openSomething } = options;
  const exhausted = counter(metrics, {
    name: "rollcall_out_of_descriptors_total",
    help: "How often, looked at once a second, the process had no file descriptors left.",
  });
  let saidAtMs = Number.NEGATIVE_INFINITY;
  return new Loop({
    name: "watch-open-files",
    everyMs: EVERY_MS,
    clock,
    turn: async () => {
      try {
        probe();
      } catch (error) {
        const code = errorCode(error);
        if (code !== "EMFILE" && code !== "ENFILE") throw error;
        exhausted.inc();
        const ended = servers.reduce((sum, server) => sum + server.spare(SPARED_AT_ONCE), 0);
        if (clock.nowMs() - saidAtMs < SAY_EVERY_MS) return;
        saidAtMs = clock.nowMs();
        const fields = { code, limit, connections_ended: ended };
        log.error(fields, "no file descriptors left, new connections are lost; raise ulimit -n");
      }
    },
  });
}

function openSomething(): void {
  closeSync(openSync(devNull, "r"));
}
