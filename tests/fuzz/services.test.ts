import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type FuzzPlan, fuzz, ROUND } from "./fuzz.ts";
import { fuzzPlan, LONGEST_MS, report } from "./plan.ts";
import { FuzzTarget } from "./target.ts";

/** As many as `make test` has time for. */
const SHORT_CASES = 1_500;

let target: FuzzTarget;
beforeAll(async () => {
  target = await FuzzTarget.start();
});
afterAll(() => target.close());

it(
  "should answer anything that anybody sends, and never with an error of its own",
  async () => {
    const plan: FuzzPlan = fuzzPlan(SHORT_CASES, ROUND);
    const outcome = await fuzz(target, plan);
    process.stderr.write(`${report(plan, outcome)}\n`);
    expect(outcome.findings).toEqual([]);
    // A fuzzer that is refused everywhere finds nothing.
    const methods = new Set(target.targets.map(({ method }) => method));
    expect(methods.size).toBeGreaterThan(50);
  },
  LONGEST_MS,
);
