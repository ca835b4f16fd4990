import {
  brokenPromise,
  SCENARIOS,
  type SimulationResult,
  simulate,
  simulateBrake,
  simulateWork,
} from "@rollcall/simulation";
import type { Drill, DrillResult } from "./drill.ts";

const MINUTE_MS = 60_000;
const WORK = { agents: 40, replicas: 3, durationMs: 15 * MINUTE_MS, faultEveryMs: 8_000 };
const BRAKE_MS = 180 * MINUTE_MS;
/** The number of seeds. `make test` runs the same scenarios with two fixed ones. */
const SEEDS = { full: 100, short: 1 };

interface Run {
  readonly promise: string;
  /** Runs the simulation. Returns how it broke its promise, or null. */
  run(seed: number): Promise<string | null>;
}

const RUNS: readonly Run[] = [
  ...SCENARIOS.map((scenario) => ({
    promise: scenario.promise,
    run: async (seed: number) => brokenPromise(scenario, await simulate({ ...scenario.options, seed })),
  })),
  {
    promise: "keep every invariant of work under every fault",
    run: async (seed) => violationOf(await simulateWork({ ...WORK, seed })),
  },
  {
    promise: "hold back storms and nothing else",
    run: async (seed) => violationOf(await simulateBrake({ seed, durationMs: BRAKE_MS })),
  },
];

/** Runs the simulations with random seeds. SEED repeats a run. */
export const simulation: Drill = {
  name: "simulation",
  title: "every simulation with new seeds, which it prints (SEED repeats one of them)",
  async run(context, { length }): Promise<DrillResult> {
    const { SEED } = process.env;
    const first = SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(SEED);
    const count = SEED === undefined ? SEEDS[length] : 1;
    const broken: string[] = [];
    for (let seed = first; seed < first + count; seed += 1) {
      context.progress(`seed ${seed}`);
      for (const { promise, run } of RUNS) {
        const violation = await run(seed);
        if (violation === null) continue;
        broken.push(`seed ${seed} did not ${promise}: ${violation}`);
        context.progress(broken.at(-1) ?? "");
      }
    }
    const seeds = `seeds ${first} to ${first + count - 1}, ${RUNS.length} simulations each`;
    if (broken.length === 0) return { passed: true, text: `PASSED: ${seeds}` };
    return { passed: false, text: [`FAILED: ${broken.length} runs of ${seeds}`, ...broken].join("\n  ") };
  },
};

function violationOf({ violation }: Pick<SimulationResult, "violation">): string | null {
  return violation;
}
