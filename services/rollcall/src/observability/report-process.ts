import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { fingerprintOf, type TlsSource } from "@rollcall/identity";
import { type Clock, Loop, type Task } from "@rollcall/process";
import { type ReservedStore, recordTimeMs, saveProcessReport } from "@rollcall/store";

const EVERY_MS = 15_000;

/** What a process says of itself, and where it learns it. */
export interface ReportOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  readonly instance: string;
  /** "up" or the service. */
  readonly service: string;
  readonly version: string;
  /** See openFilesLimit(). */
  readonly openFilesLimit: number | null;
  readonly tls: Pick<TlsSource, "notAfterMs" | "verifiedBy"> | null;
  /** What it announces to agents; null for nothing. */
  readonly announcing: Pick<TlsSource, "authorities"> | null;
  /** Null for a process that knows no NATS. */
  readonly natsConnected: (() => boolean) | null;
  readonly feedLagMs: () => number;
  readonly lacksNotifications: () => boolean;
  readonly callsWaitingMs: () => number;
}

/** Write into the record how this process is, for `rollcall doctor`. The report goes with the process's lease. */
export function reportProcess(options: ReportOptions): Task {
  const { store, clock, instance, service, version, openFilesLimit, tls, announcing, natsConnected } = options;
  return new Loop({
    name: "report-process",
    everyMs: EVERY_MS,
    clock,
    turn: async () => {
      const { aheadMs, latencyMs } = await compareClocks(store, clock);
      await saveProcessReport(store.db, {
        ...{ instance, service, host: hostname() },
        facts: {
          ...{ version, nodeVersion: process.versions.node, openFilesLimit },
          clockAheadMs: aheadMs,
          recordLatencyMs: latencyMs,
          openFiles: await countOpenFiles(),
          certificateEndsAtMs: tls?.notAfterMs ?? null,
          authorities: announcing?.authorities.map(fingerprintOf) ?? [],
          certificateAuthority: announcedAuthorityOf(options),
          natsConnected: natsConnected === null ? null : natsConnected(),
          feedLagMs: options.feedLagMs(),
          lacksNotifications: options.lacksNotifications(),
          callsWaitingMs: options.callsWaitingMs(),
        },
      });
    },
  });
}

/** The announced authority that verifies the own certificate; null for none, as where a proxy ends agents' TLS. */
function announcedAuthorityOf({ tls, announcing }: Pick<ReportOptions, "tls" | "announcing">): string | null {
  if (!tls?.verifiedBy || announcing === null) return null;
  const fingerprint = fingerprintOf(tls.verifiedBy);
  return announcing.authorities.some((it) => fingerprintOf(it) === fingerprint) ? fingerprint : null;
}

/** One answer may have waited for something else of this process. */
const ASKED = 3;

/** How far this clock is ahead of the record's, known to half of the time that the fastest of some answers took. */
async function compareClocks(store: ReservedStore, clock: Clock) {
  let best = { aheadMs: 0, latencyMs: Number.POSITIVE_INFINITY };
  for (let time = 0; time < ASKED; time += 1) {
    const startedAtMs = clock.nowMs();
    const wallMs = clock.wallMs();
    const recordMs = await recordTimeMs(store.db);
    const latencyMs = clock.nowMs() - startedAtMs;
    if (latencyMs < best.latencyMs) best = { aheadMs: wallMs + latencyMs / 2 - recordMs, latencyMs };
  }
  return best;
}

async function countOpenFiles(): Promise<number | null> {
  try {
    return (await readdir("/proc/self/fd")).length;
  } catch {
    // Not every platform has it.
    return null;
  }
}
