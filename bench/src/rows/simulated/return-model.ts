import { seededRandom } from "@rollcall/domain";
import type { Bench } from "../../bench-context.ts";
import { simulateReturn } from "../../model/return-model.ts";
import type { Figure } from "../../report.ts";
import { AGENTS_A_REPLICA } from "../../sizing-formula.ts";

/** The fleets: their size, the cores of their replicas and Postgres, and the cost of a connecting agent. */
const FLEETS = [
  { agents: 10_000, cores: 2, admitMs: 2.5 },
  { agents: 100_000, cores: 2, admitMs: 1.2 },
  { agents: 100_000, cores: 2, admitMs: 2.5 },
  { agents: 100_000, cores: 2, admitMs: 10 },
  { agents: 100_000, cores: 4, admitMs: 2.5 },
  { agents: 250_000, cores: 4, admitMs: 2.5 },
] as const;

/** The default configuration and measured costs. */
const SHARED = {
  ...{ hellosPerSecond: 3_000, helloQueue: 2_000, intervalMs: 15_000 },
  ...{ heartbeatMs: 0.04, sendAwayMs: 0.4 },
};

/**
 * Simulates returns of fleets in simulated time, so nothing is measured. The figures compare each return with the
 * bound that its CPU sets.
 */
export const returnModel: Bench = {
  name: "return-model",
  title: "simulated: all agents reconnect at once, compared with their CPU time",
  async run({ size }) {
    return FLEETS.flatMap(({ agents, cores, admitMs }): readonly Figure[] => {
      const replicas = Math.max(2, Math.ceil(agents / AGENTS_A_REPLICA));
      const random = seededRandom(size.seed);
      const { allInMs, attemptsEach } = simulateReturn({ ...SHARED, agents, replicas, cores, admitMs, random });
      const of = `${agents.toLocaleString("en")} agents, ${replicas} replicas, ${cores} cores, ${admitMs} ms each`;
      return [
        {
          figure: `${of}: all in`,
          measured: (allInMs ?? Number.POSITIVE_INFINITY) / 1_000,
          unit: "s",
          against: "their CPU alone",
          compared: (agents * admitMs) / cores / 1_000,
          target: "",
        },
        { figure: `${of}: connections`, measured: attemptsEach, unit: "", against: "one", compared: 1, target: "" },
      ];
    });
  },
};
