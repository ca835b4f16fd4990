import { closeSync, openSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";
import type { Logger } from "./logging.ts";
import { counter, type MetricsRegistry } from "./metrics.ts";
import { Loop, type Task } from "./tasks.ts";

/** The limit of open files and sockets (`ulimit -n`); null when it is unlimited or unknown. */
export function openFilesLimit(): number | null {
  try {
    return parseLimit(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    // Ignore the error: the file does not exist on every platform.
  }
  return reportedLimit();
}

/** The soft limit of open files in the text of /proc/self/limits. Node.js raises it to the hard limit at startup. */
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
/** Maximum number of connections to end per port and check: enough for probes, the store and some callers. */
const SPARED_AT_ONCE = 64;

/** A server that can end idle connections. */
export interface SparingServer {
  /** End up to `most` idle connections of each kind. Returns the number of ended connections. */
  spare(most: number): number;
}

export interface OpenFilesWatchOptions {
  readonly servers: readonly SparingServer[];
  /** See openFilesLimit(). */
  readonly limit: number | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Throws when the process cannot open another file. Replaced in tests. */
  readonly probe?: () => void;
}

/**
 * Detects that the process has run out of file descriptors, and ends idle connections until some descriptors are
 * free. Nothing else detects this, because libuv closes new connections without notifying Node.js.
 */
export function watchOpenFiles(options: OpenFilesWatchOptions): Task {
  const { servers, limit, clock, log, metrics, probe = openSomething } = options;
  const exhausted = counter(metrics, {
    name: "rollcall_out_of_descriptors_total",
    help: "Checks, one a second, that found no file descriptors left.",
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
