import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { faultsOfFields } from "./every-field.ts";
import { type FuzzPlan, fuzz, ROUND } from "./fuzz.ts";
import { fuzzPlan, LONGEST_MS, report } from "./plan.ts";
import { FuzzTarget } from "./target.ts";

/** The number of cases that fit into the time of `make test`. */
const SHORT_CASES = 1_000;

let target: FuzzTarget;
beforeAll(async () => {
  target = await FuzzTarget.start();
});
afterAll(() => target.close());

it(
  "should name each field that holds what no field may, of every method",
  async () => {
    await target.beginRound(0);
    const { calls, faults } = await faultsOfFields(target);
    expect(calls).toBeGreaterThan(150);
    expect(faults).toEqual([]);
    expect(target.complaint()).toBeNull();
  },
  LONGEST_MS,
);

it(
  "should answer anything that is sent, and never with an internal error",
  async () => {
    const plan: FuzzPlan = fuzzPlan(SHORT_CASES, ROUND);
    const outcome = await fuzz(target, plan);
    process.stderr.write(`${report(plan, outcome)}\n`);
    expect(outcome.findings).toEqual([]);
    // If most calls were refused, the fuzzer would find nothing.
    expect(outcome.answered).toBeGreaterThan(outcome.cases / 6);
  },
  LONGEST_MS,
);
