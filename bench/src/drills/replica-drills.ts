import { setTimeout as delay } from "node:timers/promises";
import type { FleetDrill } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";

const MINUTE_MS = 60_000;

/** A replica stands still; the other one is there for its agents. */
export const stop: FleetDrill = {
  name: "stop",
  title: "SIGSTOP of the replica that holds all agents, while another one could take them",
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

/** The only replica stands still. */
export const stopAlone: FleetDrill = {
  name: "stop-alone",
  title: "SIGSTOP of the only replica",
  sizes: { full: { ...FULL_SIZE, replicas: 1 }, short: { ...SHORT_SIZE, replicas: 1 } },
  faultMs: { full: MINUTE_MS, short: 3_000 },
  run: stop.run,
};

/** Everything dies at once. */
export const killAll: FleetDrill = {
  name: "kill-all",
  title: "SIGKILL of all replicas at once; they are started again after the time of the fault",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 5_000, short: 500 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size);
    await fleet.restartAll(faultMs);
    context.progress("all replicas killed and started again");
    return fleet.outcome();
  },
};
