import { ALL_FAULTS, OWN_FAULTS, type SimulationVerdict, simulate } from "@rollcall/health/simulation";
import type { Bench, BenchContext } from "../../bench-context.ts";

const HOUR_MS = 3_600_000;
const REPLICAS = 4;
const FAULT_EVERY_MS = 60_000;

/** What must never happen, looked for in days of a fleet whose time is simulated. */
export const simulation: Bench = {
  name: "simulation",
  title: "the rules of health under seeded faults in simulated time; a violation is a bug",
  async run(context) {
    const every = await run(context, "every fault", ALL_FAULTS);
    const own = await run(context, "the control plane's own faults", OWN_FAULTS);
    const none = { unit: "", against: "aim", beside: 0, target: "0" };
    return [
      { figure: "violations, every fault", measured: every.violations, ...none },
      { figure: "violations, own faults", measured: own.violations, ...none },
      { figure: "nodes judged for own faults", measured: own.losses, ...none },
    ];
  },
};

async function run(context: BenchContext, what: string, faults: typeof ALL_FAULTS) {
  const { agents, hours, seed } = context.size;
  const start = performance.now();
  const verdict = await simulate({
    seed,
    agents,
    faults,
    replicas: REPLICAS,
    durationMs: hours * HOUR_MS,
    faultEveryMs: FAULT_EVERY_MS,
  });
  const seconds = Math.round((performance.now() - start) / 1_000);
  context.progress(`${what}, seed ${seed}, ${agents} agents, ${hours} h in ${seconds} s`);
  context.progress(describe(verdict));
  return { violations: verdict.violation === null ? 0 : 1, losses: verdict.recordedLosses };
}

function describe(verdict: SimulationVerdict): string {
  const { steps, checks, faults, transitions, declarations, recordedLosses, violation } = verdict;
  const counts = { steps, checks, faults, transitions, declarations, losses: recordedLosses };
  const told = Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en")} ${name}`);
  return `${told.join(", ")}: ${violation ?? "every invariant held"}`;
}
