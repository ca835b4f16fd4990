import { setTimeout as delay } from "node:timers/promises";
import type { FleetDrill } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";

/** Cuts the network between all agents and all replicas. */
export const network: FleetDrill = {
  name: "network",
  title: "the network between agents and replicas drops everything",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 30_000, short: 1_500 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size, { hasProxies: true });
    for (const proxy of fleet.proxies) proxy.silence(true);
    context.progress(`every path silent for ${faultMs / 1_000} s`);
    await delay(faultMs);
    for (const proxy of fleet.proxies) proxy.silence(false);
    return fleet.outcome();
  },
};

/** Drops all data on the path to one replica. Connections stay open. */
export const deadPath: FleetDrill = {
  name: "dead-path",
  title: "the path to the replica with all agents goes silent; they move to another one",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 30_000, short: 2_500 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size, { hasProxies: true, isOnFirst: true });
    const before = (await fleet.report()).reconnects;
    const [first] = fleet.proxies;
    first?.silence(true);
    await delay(faultMs);
    const { held, reconnects } = await fleet.report();
    context.progress(`${reconnects - before} paths left, ${held} agents connected elsewhere`);
    first?.silence(false);
    return fleet.outcome();
  },
};
