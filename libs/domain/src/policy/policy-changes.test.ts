import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { parseSelector } from "../labels/parse-selector.ts";
import {
  type HealthPolicies,
  NO_HEALTH_POLICIES,
  type PolicyEntry,
  type PolicyOverride,
  scopeOf,
  withoutPolicy,
  withPolicy,
} from "./health-policies.ts";
import { DEFAULT_HEALTH_POLICY } from "./policy.ts";
import { changedPolicies, newContradictions } from "./policy-changes.ts";
import type { HealthPolicy } from "./policy-fields.ts";
import { PolicyResolver, type PolicySubject } from "./resolve-policy.ts";

const group = (name: string, text: string, override: PolicyOverride, priority = 0): PolicyEntry => {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return { kind: "group", group: { name, priority, selector: parsed.selector, override } };
};
const byDefault = (override: PolicyOverride): PolicyEntry => ({ kind: "default", override });
const ofNode = (nodeId: string, override: PolicyOverride): PolicyEntry => ({
  kind: "node",
  nodeId,
  override,
});
const node = (id: string, labels: Readonly<Record<string, string>> = {}): PolicySubject => ({
  id,
  labels: new Map(Object.entries(labels)),
});
const all = (...entries: readonly PolicyEntry[]) => entries.reduce(withPolicy, NO_HEALTH_POLICIES);
const resolver = (policies: HealthPolicies) => new PolicyResolver(DEFAULT_HEALTH_POLICY, policies);

describe("changedPolicies()", () => {
  it("should leave out nodes whose values stay, even from another source", () => {
    const before = resolver(all(group("a", "gpu", { unhealthyAfterMs: 30_000 })));
    const after = resolver(
      all(group("a", "gpu", { unhealthyAfterMs: 30_000 }), ofNode("n1", { unhealthyAfterMs: 30_000 })),
    );
    expect(changedPolicies(before, after, [node("n1", { gpu: "x" }), node("n2")])).toEqual([]);
  });

  // Compares the resolver with a second implementation, which finds for each field the policy that wins.
  it("should preview exactly what applies after a set or a deletion", () => {
    const override = fc.record(
      {
        unhealthyAfterMs: fc.integer({ min: 1, max: 3 }),
        unhealthyAfterMissed: fc.option(fc.integer({ min: 1, max: 3 })),
        infoIntervalMs: fc.integer({ min: 1, max: 3 }),
      },
      { requiredKeys: [] },
    );
    const label = fc.constantFrom("a", "b", "c");
    const entry = fc.oneof(
      override.map(byDefault),
      fc.tuple(fc.constantFrom("g1", "g2"), label, override, fc.integer({ min: 0, max: 1 })).map((it) => group(...it)),
      fc.tuple(fc.constantFrom("n0", "n1", "n2"), override).map((it) => ofNode(...it)),
    );
    const nodes = fc.array(fc.uniqueArray(label), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(entry), entry, fc.boolean(), nodes, (entries, edit, isSet, sets) => {
        const subjects = sets.map((labels, index) =>
          node(`n${index}`, Object.fromEntries(labels.map((it) => [it, "x"]))),
        );
        const before = all(...entries);
        const after = isSet ? withPolicy(before, edit) : withoutPolicy(before, scopeOf(edit));
        const changes = changedPolicies(resolver(before), resolver(after), subjects);
        const expected = subjects.flatMap((it) => {
          const [was, is] = [naively(before, it), naively(after, it)];
          return JSON.stringify(was) === JSON.stringify(is) ? [] : [{ nodeId: it.id, was, is }];
        });
        expect(
          changes.map(({ nodeId, before: was, after: is }) => ({
            nodeId,
            was: was.policy,
            is: is.policy,
          })),
        ).toEqual(expected);
      }),
    );
  });
});

function naively(policies: HealthPolicies, { id, labels }: PolicySubject): HealthPolicy {
  const groups = [...policies.groups.values()].filter(({ selector }) => selector.every(({ key }) => labels.has(key)));
  groups.sort((left, right) =>
    left.priority === right.priority ? right.name.localeCompare(left.name) : left.priority - right.priority,
  );
  return Object.assign(
    {},
    DEFAULT_HEALTH_POLICY,
    policies.default,
    ...groups.map(({ override }) => override),
    policies.nodes.get(id),
  );
}

describe("newContradictions()", () => {
  const found = (before: HealthPolicies, after: HealthPolicies, nodes: readonly PolicySubject[] = []) => {
    const [was, is] = [resolver(before), resolver(after)];
    return newContradictions(was, is, changedPolicies(was, is, nodes)).map(
      ({ combination, problems }) => `${combination}: ${problems.join("; ")}`,
    );
  };
  const none = NO_HEALTH_POLICIES;
  const gpuNode = node("n1", { gpu: "x", spot: "y" });

  it.each<[string, HealthPolicies, readonly PolicySubject[], string]>([
    [
      "a default alone",
      all(byDefault({ unhealthyAfterMs: 20_000 })),
      [],
      "all nodes: unhealthyAfterMs is 20000: it must be at least two heartbeats",
    ],
    [
      "a group without nodes over the default",
      all(byDefault({ heartbeatIntervalMs: 20_000 }), group("g", "gpu", { unhealthyAfterMs: 30_000 })),
      [],
      "all nodes with group g: unhealthyAfterMs is 30000",
    ],
    [
      "a node's own over a group",
      all(
        group("g", "gpu", { unhealthyAfterMs: 400_000, unknownAfterMs: 500_000 }),
        ofNode("n1", { unknownAfterMs: 300_000 }),
      ),
      [gpuNode],
      "group g with node n1: unknownAfterMs is 300000: it must be greater than unhealthyAfterMs, 400000",
    ],
    [
      "two groups that meet on a node alone",
      all(group("fast", "gpu", { unhealthyAfterMs: 30_000 }), group("slow", "spot", { heartbeatIntervalMs: 20_000 })),
      [gpuNode],
      "group slow with group fast: unhealthyAfterMs is 30000",
    ],
  ])("should name %s", (_, after, nodes, text) => {
    expect(found(none, after, nodes)).toEqual([expect.stringContaining(text)]);
  });

  it("should not see two groups that meet on no node", () => {
    const after = all(
      group("fast", "gpu", { unhealthyAfterMs: 30_000 }),
      group("slow", "spot", { heartbeatIntervalMs: 20_000 }),
    );
    expect(found(none, after, [node("n1", { gpu: "x" }), node("n2", { spot: "y" })])).toEqual([]);
  });

  it("should find what a deletion uncovers", () => {
    const both = all(byDefault({ heartbeatIntervalMs: 5_000 }), group("g", "gpu", { unhealthyAfterMs: 12_000 }));
    expect(found(none, both, [gpuNode])).toEqual([]);
    expect(found(both, withoutPolicy(both, { kind: "default" }), [gpuNode])).toEqual([
      expect.stringContaining("group g: unhealthyAfterMs is 12000"),
    ]);
  });

  it("should hold nothing against a change that was so before it", () => {
    // Use a configuration from another release, which can contain this contradiction.
    const broken = all(group("g", "gpu", { unhealthyAfterMs: 12_000 }));
    expect(found(broken, withPolicy(broken, ofNode("n2", { infoIntervalMs: 5_000 })), [gpuNode, node("n2")])).toEqual(
      [],
    );
  });
});
