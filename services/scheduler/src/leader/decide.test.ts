import { describe, expect, it } from "@jest/globals";
import type { JobRecord, Plan } from "@rollcall/domain";
import type { WorkCommitted } from "@rollcall/store";
import { decide } from "./decide.ts";

const COMMITTED: WorkCommitted = { outcome: "COMMITTED", revision: 1n };
const STALE: WorkCommitted = { outcome: "STALE", nodeIds: [], jobs: ["once"] };

function planOf(state: JobRecord["state"], more: boolean): Plan {
  const before = { name: "once", state: "ACTIVE" } as JobRecord;
  const jobs = [{ before, after: { ...before, state, placed: true } }];
  return { executions: [], jobs, drains: [], lostNodes: [], more, wakeAtMs: null };
}

/** A row of plans, and what is done with them. */
function planning(plans: readonly Plan[], outcomes: readonly WorkCommitted[]) {
  const done: string[] = [];
  const waiting = [...plans];
  const answers = [...outcomes];
  const nameOf = (plan: Plan) => `${plans.indexOf(plan)}`;
  return {
    done,
    plan: async () => {
      const plan = waiting.shift() as Plan;
      done.push(`plan ${nameOf(plan)}`);
      return plan;
    },
    write: async (plan: Plan) => {
      // The next plan is made in the meantime, if any is.
      for (let turn = 0; turn < 10; turn += 1) await null;
      done.push(`written ${nameOf(plan)}`);
      return answers.shift() as WorkCommitted;
    },
    revert: (plan: Plan) => done.push(`revert ${nameOf(plan)}`),
  };
}

describe("decide()", () => {
  it("should make the next plan while one is written, and take both back when that was stale", async () => {
    const rest = planning([planOf("ACTIVE", true), planOf("ACTIVE", false)], [STALE]);
    expect(await decide(rest)).toEqual({ isStale: true, more: false, wakeAtMs: null });
    expect(rest.done).toEqual(["plan 0", "plan 1", "written 0", "revert 1", "revert 0"]);
  });

  it.each([
    { outcome: COMMITTED, decided: { isStale: false, more: true, wakeAtMs: null }, reverted: [] },
    { outcome: STALE, decided: { isStale: true, more: true, wakeAtMs: null }, reverted: ["revert 0"] },
  ])("should plan nothing before it is known whether a job's end is written ($outcome.outcome)", async (given) => {
    const { outcome, decided, reverted } = given;
    const ending = planning([planOf("COMPLETED", true), planOf("ACTIVE", false)], [outcome]);
    expect(await decide(ending)).toEqual(decided);
    expect(ending.done).toEqual(["plan 0", "written 0", ...reverted]);
  });
});
