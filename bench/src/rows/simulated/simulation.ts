import { ALL_FAULTS, OWN_FAULTS, type SimulationResult, simulate } from "@rollcall/simulation";
import type { Bench, BenchContext } from "../../bench-context.ts";

const HOUR_MS = 3_600_000;
const REPLICAS = 4;
const FAULT_EVERY_MS = 60_000;

/** Checks the invariants of health over days of a fleet in simulated time. */
export const simulation: Bench = {
  name: "simulation",
  title: "the rules of health under seeded faults in simulated time; a violation is a bug",
  async run(context) {
    const every = await run(context, "every fault", ALL_FAULTS);
    const own = await run(context, "the control plane's own faults", OWN_FAULTS);
    const none = { unit: "", against: "aim", compared: 0, target: "0" };
    return [
      { figure: "violations, every fault", measured: every.violations, ...none },
      { figure: "violations, own faults", measured: own.violations, ...none },
      { figure: "nodes declared for own faults", measured: own.losses, ...none },
    ];
  },
};

async function run(context: BenchContext, what: string, faults: typeof ALL_FAULTS) {
  const { agents, hours, seed } = context.size;
  const start = performance.now();
  const result = await simulate({
    seed,
    agents,
    faults,
    replicas: REPLICAS,
    durationMs: hours * HOUR_MS,
    faultEveryMs: FAULT_EVERY_MS,
  });
  const seconds = Math.round((performance.now() - start) / 1_000);
  context.progress(`${what}, seed ${seed}, ${agents} agents, ${hours} h in ${seconds} s`);
  context.progress(describe(result));
  return { violations: result.violation === null ? 0 : 1, losses: result.recordedLosses };
}

function describe(result: SimulationResult): string {
  const { steps, checks, faults, transitions, declarations, recordedLosses, violation } = result;
  const counts = { steps, checks, faults, transitions, declarations, losses: recordedLosses };
  const told = Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
  return `${told.join(", ")}: ${violation ?? "every invariant held"}`;
}
