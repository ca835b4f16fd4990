import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../bench-context.ts";
import { cpuBetween, Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import { detectionDelays } from "./detection.ts";

/** The size of the fleet, as a multiple of the size in the other rows. */
const TIMES = 10;
const LEAST_DURATION_MS = 60_000;
/**
 * The number of Beats that an agent misses before its node is declared unhealthy. It is also the minimum
 * number of intervals to measure.
 */
const LEAST_BEATS = 3;
const AIM_CORES = 1;
/** The time until sample rings are full and the work that connecting causes is done. */
const SETTLE_MS = 30_000;

/**
 * Measures what a large fleet costs while nothing happens, and how soon the death of one of its agents
 * is known.
 */
export const scale: Bench = {
  name: "scale",
  title: "a large fleet on several replicas: its cost, and the delay of detection",
  async run(context) {
    const agents = context.size.agents * TIMES;
    const replicas = Math.ceil(agents / MOST_AGENTS_A_PROCESS);
    const { intervalMs } = context.size;
    const unhealthyAfterMs = Math.max(FULL_SIZE.unhealthyAfterMs, intervalMs * LEAST_BEATS);
    const size = { agents, replicas, intervalMs, unhealthyAfterMs };
    const fleet = await Fleet.start(context, size);
    await delay(SETTLE_MS);
    const before = fleet.cpuSeconds();
    const startMs = performance.now();
    await delay(Math.max(LEAST_DURATION_MS, intervalMs * LEAST_BEATS, context.size.durationMs));
    const seconds = (performance.now() - startMs) / 1_000;
    const after = fleet.cpuSeconds();
    const { held } = await fleet.report();
    const used = cpuBetween(before, after);
    const servers = used.replicas / seconds;
    const postgres = used.postgres / seconds;
    const delays = await detectionDelays(context, fleet, size);
    const aim = { unit: "cores", against: "aim", compared: AIM_CORES };
    return [
      {
        figure: "agents held",
        measured: held,
        unit: "",
        against: "asked for",
        compared: agents,
        target: "1",
      },
      {
        figure: `${replicas} replicas and Postgres`,
        measured: servers + postgres,
        ...aim,
        target: "1 or less",
      },
      { figure: "only the replicas", measured: servers, ...aim, target: "" },
      { figure: "Postgres alone", measured: postgres, ...aim, target: "" },
      ...delays,
    ];
  },
};
