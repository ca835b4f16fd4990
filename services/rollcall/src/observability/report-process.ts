import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { fingerprintOf, type TlsSource } from "@rollcall/identity";
import { type Clock, Loop, type Task } from "@rollcall/process";
import { type ReservedStore, saveProcessReport, storeTimeMs } from "@rollcall/store";

const EVERY_MS = 15_000;

/** The inputs for a process's report. */
export interface ReportOptions {
  readonly store: ReservedStore;
  readonly clock: Clock;
  readonly instance: string;
  /** The process's name: "up" or the service. */
  readonly service: string;
  readonly version: string;
  /** See openFilesLimit(). */
  readonly openFilesLimit: number | null;
  readonly tls: Pick<TlsSource, "notAfterMs" | "verifiedBy"> | null;
  /** The authorities announced to agents; null for none. */
  readonly announcing: Pick<TlsSource, "authorities"> | null;
  /** Whether NATS is connected; null for a process without NATS. */
  readonly natsConnected: (() => boolean) | null;
  readonly feedLagMs: () => number;
  readonly lacksNotifications: () => boolean;
  readonly callsWaitingMs: () => number;
}

/**
 * Write the process's state to the store for `rollcall doctor`. The report is deleted together with the process's
 * lease.
 */
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
          storeLatencyMs: latencyMs,
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

/**
 * The announced authority that verifies the process's own certificate; null for none, for example when a proxy
 * terminates agents' TLS.
 */
function announcedAuthorityOf({ tls, announcing }: Pick<ReportOptions, "tls" | "announcing">): string | null {
  if (!tls?.verifiedBy || announcing === null) return null;
  const fingerprint = fingerprintOf(tls.verifiedBy);
  return announcing.authorities.some((it) => fingerprintOf(it) === fingerprint) ? fingerprint : null;
}

/** Number of measurements, because a single measurement may include a wait for other work of this process. */
const ASKED = 3;

/**
 * How far this machine's clock is ahead of the database's, accurate to half the duration of the fastest
 * measurement.
 */
async function compareClocks(store: ReservedStore, clock: Clock) {
  let best = { aheadMs: 0, latencyMs: Number.POSITIVE_INFINITY };
  for (let time = 0; time < ASKED; time += 1) {
    const startedAtMs = clock.nowMs();
    const wallMs = clock.wallMs();
    const recordMs = await storeTimeMs(store.db);
    const latencyMs = clock.nowMs() - startedAtMs;
    if (latencyMs < best.latencyMs) best = { aheadMs: wallMs + latencyMs / 2 - recordMs, latencyMs };
  }
  return best;
}

async function countOpenFiles(): Promise<number | null> {
  try {
    return (await readdir("/proc/self/fd")).length;
  } catch {
    // The platform does not provide the value.
    return null;
  }
}
