import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type BoundedPlan, boundPlan, type DeclaredCost } from "./bounds.ts";
import type { DeclaredAction, DeclaredStep } from "./plan.ts";

const BOUNDS = { nodes: 2, fleetPolicies: 1, jobs: 1, pruned: 3 };

/**
 * The cost of a step by its name: "p..." is a policy for many nodes, "n1..." concerns node n1, "j..." is a job. All
 * other names cost nothing.
 */
const costOf = (name: string): DeclaredCost => {
  const node = /^n./.exec(name)?.[0] ?? null;
  return { node, isFleetPolicy: name.startsWith("p"), isJob: name.startsWith("j") };
};

function stepsOf(given: Readonly<Record<string, DeclaredAction>>): readonly DeclaredStep[] {
  return Object.entries(given).map(([name, action]) => {
    const fields = action === "prune" || action === "forget" ? null : {};
    return { name, action, differences: [], formerOwner: "", fields };
  });
}

const namesOf = (plan: BoundedPlan) => (plan.ok ? [plan.steps.map(({ name }) => name), plan.isCut] : plan);

describe("boundPlan()", () => {
  it.each<[string, Readonly<Record<string, DeclaredAction>>, unknown]>([
    ["take as many nodes as the bound", { n1: "create", n2: "adopt" }, [["n1", "n2"], false]],
    ["count a node once", { n1a: "create", n1b: "update", n2: "create" }, [["n1a", "n1b", "n2"], false]],
    ["refuse more nodes", { n1: "create", n2: "adopt", n3: "update" }, { ok: false, bound: "nodes", count: 3 }],
    ["refuse more policies", { p1: "create", p2: "update" }, { ok: false, bound: "fleetPolicies", count: 2 }],
    ["refuse more jobs", { j1: "create", j2: "update" }, { ok: false, bound: "jobs", count: 2 }],
    ["prune as many jobs as the bound", { j1: "create", j2: "prune", w: "prune" }, [["j1", "w"], true]],
    ["not count what stays", { n1: "unchanged", n2: "create", n3: "create" }, [["n1", "n2", "n3"], false]],
    ["not count an owner of a policy", { p1: "adopt", p2: "create" }, [["p1", "p2"], false]],
    ["prune what fits in addition", { n1: "create", n2: "prune", n3: "prune", w: "prune" }, [["n1", "n2", "w"], true]],
    ["prune as many policies as the bound", { p1: "prune", p2: "prune" }, [["p1"], true]],
    ["prune the first", { a: "prune", b: "prune", c: "prune", d: "prune" }, [["a", "b", "c"], true]],
    [
      "forget all",
      { a: "forget", b: "forget", n1: "forget", n2: "forget", n3: "forget" },
      [["a", "b", "n1", "n2", "n3"], false],
    ],
  ])("should %s", (_, given, expected) => {
    expect(namesOf(boundPlan(stepsOf(given), costOf, BOUNDS))).toEqual(expected);
  });

  it("should come to an end when the rest is pruned call by call", () => {
    const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d", "e", "n1", "n2", "n3", "n4", "p1", "p2", "p3"));
    fc.assert(
      fc.property(names, (given) => {
        let left = given;
        while (left.length > 0) {
          const plan = boundPlan(stepsOf(Object.fromEntries(left.map((name) => [name, "prune"]))), costOf, BOUNDS);
          const done = new Set(plan.ok ? plan.steps.map(({ name }) => name) : []);
          expect(done.size).toBeGreaterThan(0);
          expect(plan).toMatchObject({ isCut: done.size < left.length });
          left = left.filter((name) => !done.has(name));
        }
      }),
    );
  });
});
