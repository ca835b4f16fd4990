import { returnAimMs } from "../aims.ts";
import type { Bench } from "../bench-context.ts";
import { Fleet, FULL_SIZE } from "../drills/fleet.ts";
import { MOST_AGENTS_A_PROCESS } from "../load/paced-loads.ts";
import { quantileOf, readHistogram } from "../servers/replica-metrics.ts";

const AIM_LAG_MS = 100;
const LAG = "rollcall_health_loop_lag_seconds";

/** What follows when every replica dies at once. */
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
    const { falselyJudged, rightlyJudged } = await fleet.outcome();
    const aim = { against: "aim", target: "1 or less" };
    return [
      { figure: "until all are HEALTHY", measured: tookMs, unit: "ms", ...aim, beside: returnAimMs(agents) },
      { figure: "loop lag, p99 at most", measured: lagMs, unit: "ms", ...aim, beside: AIM_LAG_MS },
      {
        figure: "judged, though the agent tried to return in time",
        ...{ measured: falselyJudged.length, unit: "", against: "aim", beside: 0, target: "0" },
      },
      // A load process connects so many at a time: in a large fleet the others wait in it, and are silent.
      {
        figure: "judged, whose agent did not try",
        ...{ measured: rightlyJudged, unit: "", against: "aim", beside: 0, target: "" },
      },
    ];
  },
};
