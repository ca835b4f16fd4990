import { describe, expect, it } from "@jest/globals";
import type { Job, Plan } from "@rollcall/domain";
import type { WorkCommitted } from "@rollcall/store";
import { decide } from "./decide.ts";

const COMMITTED: WorkCommitted = { outcome: "COMMITTED", revision: 1n };
const STALE: WorkCommitted = { outcome: "STALE", nodeIds: [], jobs: ["once"] };

function planOf(state: Job["state"], more: boolean): Plan {
  const before = { name: "once", state: "ACTIVE" } as Job;
  const jobs = [{ before, after: { ...before, state, placed: true } }];
  return { executions: [], jobs, drains: [], lostNodes: [], more, wakeAtMs: null };
}

/** A fake planner that returns these plans in order and records writes and reverts. */
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
      // Give decide() time to make the next plan, if any.
      for (let turn = 0; turn < 10; turn += 1) await null;
      done.push(`written ${nameOf(plan)}`);
      return answers.shift() as WorkCommitted;
    },
    revert: (plan: Plan) => done.push(`revert ${nameOf(plan)}`),
  };
}

describe("decide()", () => {
  it("should make the next plan while one is written, and revert both if that was stale", async () => {
    const rest = planning([planOf("ACTIVE", true), planOf("ACTIVE", false)], [STALE]);
    expect(await decide(rest)).toEqual({ isStale: true, more: false, wakeAtMs: null });
    expect(rest.done).toEqual(["plan 0", "plan 1", "written 0", "revert 1", "revert 0"]);
  });

  it.each([
    { outcome: COMMITTED, decided: { isStale: false, more: true, wakeAtMs: null }, reverted: [] },
    { outcome: STALE, decided: { isStale: true, more: true, wakeAtMs: null }, reverted: ["revert 0"] },
  ])("should plan nothing before the write of a job's end has a result ($outcome.outcome)", async (given) => {
    const { outcome, decided, reverted } = given;
    const ending = planning([planOf("COMPLETED", true), planOf("ACTIVE", false)], [outcome]);
    expect(await decide(ending)).toEqual(decided);
    expect(ending.done).toEqual(["plan 0", "written 0", ...reverted]);
  });
});
