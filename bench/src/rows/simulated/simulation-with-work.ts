import { simulateWork } from "@rollcall/simulation";
import type { Bench } from "../../bench-context.ts";

const HOUR_MS = 3_600_000;
const REPLICAS = 4;
const FAULT_EVERY_MS = 60_000;

/** Checks the invariants of executions over days of a fleet in simulated time. */
export const simulationWithWork: Bench = {
  name: "simulation-work",
  title: "the rules of work under seeded faults in simulated time; a violation is a bug",
  async run(context) {
    const { agents, hours, seed } = context.size;
    const start = performance.now();
    const result = await simulateWork({
      ...{ seed, agents, replicas: REPLICAS, durationMs: hours * HOUR_MS, faultEveryMs: FAULT_EVERY_MS },
    });
    const seconds = Math.round((performance.now() - start) / 1_000);
    const { steps, faults, transitions, violation, work } = result;
    context.progress(`seed ${seed}, ${agents} agents, ${hours} h in ${seconds} s`);
    context.progress(`${steps} steps, ${faults} faults, ${transitions} transitions; ${work}`);
    context.progress(violation ?? "every invariant held");
    const violations = violation === null ? 0 : 1;
    return [{ figure: "violations", measured: violations, unit: "", against: "aim", compared: 0, target: "0" }];
  },
};
