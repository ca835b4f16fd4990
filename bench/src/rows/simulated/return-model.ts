import { seededRandom } from "@rollcall/domain";
import type { Bench } from "../../bench-context.ts";
import { simulateReturn } from "../../model/return-model.ts";
import type { Figure } from "../../report.ts";
import { AGENTS_A_REPLICA } from "../../sizing-formula.ts";

/** Sizes of a fleet, cores of its replicas and Postgres, and what an agent that comes in costs. */
const FLEETS = [
  { agents: 10_000, cores: 2, takeInMs: 2.5 },
  { agents: 100_000, cores: 2, takeInMs: 1.2 },
  { agents: 100_000, cores: 2, takeInMs: 2.5 },
  { agents: 100_000, cores: 2, takeInMs: 10 },
  { agents: 100_000, cores: 4, takeInMs: 2.5 },
  { agents: 250_000, cores: 4, takeInMs: 2.5 },
] as const;

/** As configured by default, and as measured. */
const SHARED = {
  ...{ hellosPerSecond: 3_000, helloQueue: 2_000, intervalMs: 15_000 },
  ...{ heartbeatMs: 0.04, sendAwayMs: 0.4 },
};

/** No times are measured: fleets come back in simulated time, which says how close to its CPU alone a return comes. */
export const returnModel: Bench = {
  name: "return-model",
  title: "simulated: all agents come back at once, beside the time that their CPU takes alone",
  async run({ size }) {
    return FLEETS.flatMap(({ agents, cores, takeInMs }): readonly Figure[] => {
      const replicas = Math.max(2, Math.ceil(agents / AGENTS_A_REPLICA));
      const random = seededRandom(size.seed);
      const { allInMs, attemptsEach } = simulateReturn({ ...SHARED, agents, replicas, cores, takeInMs, random });
      const of = `${agents.toLocaleString("en")} agents, ${replicas} replicas, ${cores} cores, ${takeInMs} ms each`;
      return [
        {
          figure: `${of}: all in`,
          measured: (allInMs ?? Number.POSITIVE_INFINITY) / 1_000,
          unit: "s",
          against: "their CPU alone",
          beside: (agents * takeInMs) / cores / 1_000,
          target: "",
        },
        { figure: `${of}: connections`, measured: attemptsEach, unit: "", against: "one", beside: 1, target: "" },
      ];
    });
  },
};
