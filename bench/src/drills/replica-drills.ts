import { setTimeout as delay } from "node:timers/promises";
import type { FleetDrill } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";

const MINUTE_MS = 60_000;

/** Pauses one replica with SIGSTOP, so that the other one takes over its agents. */
export const stop: FleetDrill = {
  name: "stop",
  title: "SIGSTOP of the replica with all agents, while another one is available",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: MINUTE_MS, short: 3_000 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size, { isOnFirst: true });
    const [first] = fleet.replicas;
    first?.server.signal("SIGSTOP");
    context.progress(`stopped for ${faultMs / 1_000} s`);
    await delay(faultMs);
    first?.server.signal("SIGCONT");
    return fleet.outcome();
  },
};

/** Pauses the only replica with SIGSTOP. */
export const stopAlone: FleetDrill = {
  name: "stop-alone",
  title: "SIGSTOP of the only replica",
  sizes: { full: { ...FULL_SIZE, replicas: 1 }, short: { ...SHORT_SIZE, replicas: 1 } },
  faultMs: { full: MINUTE_MS, short: 3_000 },
  run: stop.run,
};

/** Kills all replicas at the same time. */
export const killAll: FleetDrill = {
  name: "kill-all",
  title: "SIGKILL of all replicas at once; they are restarted after the fault's duration",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 5_000, short: 500 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size);
    await fleet.restartAll(faultMs);
    context.progress("all replicas killed and restarted");
    return fleet.outcome();
  },
};
