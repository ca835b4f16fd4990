import { gauge, Loop, type MetricsRegistry, onScrape, type Task } from "@rollcall/process";
import type { CheckResult } from "@rollcall/rpc";
import { leasedTask, RELAY_LEASE, type RelayState, readRelay } from "@rollcall/store";
import type { RegistryProcess } from "../registry-process.ts";
import { LogPublisher } from "../relay/log-publisher.ts";
import { LogReader } from "../relay/log-reader.ts";
import { DEFAULT_RELAY_TIMING, type Outward, type RelayTiming } from "../relay/outward.ts";
import type { LogWake } from "../watch/log-wake.ts";

/** The inputs for the relay. */
export interface RelayOptions extends Pick<RegistryProcess, "store" | "clock" | "log" | "metrics" | "instance"> {
  readonly outward: Outward;
  readonly wake: Pick<LogWake, "ready" | "join">;
  readonly timing?: Partial<RelayTiming>;
}

/** Relays the log to NATS. */
export interface EventRelay {
  readonly tasks: readonly Task[];
  /** The relay's status for readiness. An unavailable NATS does not make a registry unready. */
  report(): CheckResult;
}

/**
 * Relay the log to NATS, starting at a cursor in the store. A lease decides which registry of the cluster does this.
 */
export function relayEvents({ timing, outward, wake, ...services }: RelayOptions): EventRelay {
  const { clock, log, metrics, instance } = services;
  const store = services.store.reserved;
  const times = { ...DEFAULT_RELAY_TIMING, ...timing };
  const reader = new LogReader(store, log, metrics);
  const shared = { store, clock, log, instance, wake, outward, reader };
  const publisher = new LogPublisher({ ...shared, timing: times });
  const relaying = leasedTask({
    ...{ store, clock, log, renewEveryMs: times.renewEveryMs, expiryMs: times.expiryMs },
    claim: { name: RELAY_LEASE, instance, service: "registry", address: "" },
    able: async (signal) => {
      await outward.connected(signal);
    },
    work: (signal, succeeded) => publisher.run(signal, succeeded),
  });
  let seen: RelayState | null = null;
  const observing = new Loop({
    name: "observe-relay",
    everyMs: times.observeEveryMs,
    clock,
    turn: async () => {
      seen = await readRelay(store.db);
      publisher.observe(seen, await store.refreshLogId());
    },
  });
  outward.exposeLag(() => lagOf(seen));
  exposeActive(metrics, () => relaying.active);
  return {
    tasks: [relaying, observing],
    report: () => ({
      ok: true,
      ...(isSlow(seen) ? { degraded: true } : {}),
      message: describe(relaying.active, seen),
    }),
  };
}

/**
 * Minimum waiting time for an acknowledgement at which the relay counts as slow, in milliseconds. NATS normally
 * acknowledges an event within milliseconds.
 */
const SLOW_MS = 5_000;

function isSlow(state: RelayState | null): state is RelayState {
  return state !== null && state.waitingMs >= SLOW_MS;
}

function lagOf(state: RelayState | null): number {
  return state === null ? 0 : Number(state.head - state.revision);
}

function describe(isActive: boolean, seen: RelayState | null): string {
  if (seen === null) return "not known yet";
  const slow = isSlow(seen) ? `, NATS has not acknowledged an event for ${Math.round(seen.waitingMs / 1_000)} s` : "";
  const behind = `${lagOf(seen)} revisions behind${slow}`;
  if (isActive) return `active, ${behind}`;
  return seen.holder === null ? `no process relays events, ${behind}` : `active elsewhere, ${behind}`;
}

function exposeActive(metrics: MetricsRegistry, isActive: () => boolean): void {
  const active = gauge(metrics, {
    name: "rollcall_events_relay_active",
    help: "Whether this process relays events to NATS: 1 or 0.",
  });
  onScrape(metrics, () => active.set(isActive() ? 1 : 0));
}
