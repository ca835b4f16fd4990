import { returnAimMs } from "../aims.ts";
import type { Bench } from "../bench-context.ts";
import { Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import { quantileOf, readHistogram } from "../servers/replica-metrics.ts";

const AIM_LAG_MS = 100;
const LAG = "rollcall_health_loop_lag_seconds";

/** Measures what happens when all replicas die at the same moment. */
export const failover: Bench = {
  name: "failover",
  title: "all replicas killed at once and started again, until every agent is HEALTHY again",
  async run(context) {
    const { agents } = context.size;
    const replicas = Math.max(FULL_SIZE.replicas, Math.ceil(agents / MOST_AGENTS_A_PROCESS));
    const fleet = await Fleet.start(context, { ...FULL_SIZE, agents, replicas });
    const startMs = performance.now();
    await fleet.restartAll(0);
    context.progress(`replicas serve again after ${Math.round(performance.now() - startMs)} ms`);
    await fleet.recover();
    const tookMs = performance.now() - startMs;
    const lags = await Promise.all(fleet.replicas.map(({ ports }) => readHistogram(ports.probes, LAG)));
    const lagMs = Math.max(...lags.map((lag) => quantileOf(lag, 0.99) * 1_000));
    const { falselyDeclared, rightlyDeclared } = await fleet.outcome();
    const aim = { against: "aim", target: "1 or less" };
    return [
      { figure: "until all are HEALTHY", measured: tookMs, unit: "ms", ...aim, compared: returnAimMs(agents) },
      { figure: "loop lag, p99 at most", measured: lagMs, unit: "ms", ...aim, compared: AIM_LAG_MS },
      {
        figure: "declared although the agent tried to return in time",
        ...{ measured: falselyDeclared.length, unit: "", against: "aim", compared: 0, target: "0" },
      },
      // A load process connects a limited number of agents at a time. In a large fleet, the other agents wait
      // in that process and send nothing.
      {
        figure: "declared; the agent did not try to return",
        ...{ measured: rightlyDeclared, unit: "", against: "aim", compared: 0, target: "" },
      },
    ];
  },
};
