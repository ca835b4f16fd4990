import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../bench-context.ts";
import { cpuBetween, Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import { detectionDelays } from "./detection.ts";

/** So many times the agents of the other rows. */
const TIMES = 10;
const LEAST_DURATION_MS = 60_000;
/** Beats that an agent misses before it is judged, and that are measured at least. */
const LEAST_BEATS = 3;
const AIM_CORES = 1;
/** Samples are full, and what coming in has left behind is done. */
const SETTLE_MS = 30_000;

/** What a large fleet costs while nothing happens, and how soon the death of one among so many is known. */
export const scale: Bench = {
  name: "scale",
  title: "a large fleet over several replicas: what it costs, and how soon a death is known",
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
    const aim = { unit: "cores", against: "aim", beside: AIM_CORES };
    return [
      {
        figure: "agents held",
        measured: held,
        unit: "",
        against: "asked for",
        beside: agents,
        target: "1",
      },
      {
        figure: `${replicas} replicas and Postgres`,
        measured: servers + postgres,
        ...aim,
        target: "1 or less",
      },
      { figure: "the replicas alone", measured: servers, ...aim, target: "" },
      { figure: "Postgres alone", measured: postgres, ...aim, target: "" },
      ...delays,
    ];
  },
};
