import { setTimeout as delay } from "node:timers/promises";
import type { FleetDrill } from "./drill.ts";
import { Fleet, FULL_SIZE, SHORT_SIZE } from "./fleet.ts";

/** Makes the database unavailable for all processes. */
export const postgres: FleetDrill = {
  name: "postgres",
  title: "Postgres is stopped, and started again",
  sizes: { full: FULL_SIZE, short: SHORT_SIZE },
  faultMs: { full: 600_000, short: 6_000 },
  run: async (context, size, faultMs) => {
    const fleet = await Fleet.start(context, size);
    await fleet.database.stop();
    context.progress(`Postgres stopped for ${faultMs / 1_000} s`);
    await delay(faultMs);
    const { held } = await fleet.report();
    context.progress(`${held} agents connected before it came back`);
    await fleet.database.start();
    return fleet.outcome();
  },
};
