import { describe, expect, it } from "@jest/globals";
import {
  collectPolicies,
  describePolicyScope,
  formatPolicyScope,
  type PolicyEntry,
  type PolicyScope,
  parsePolicyScope,
} from "./health-policies.ts";
import {
  changePolicy,
  isSamePolicies,
  isSamePolicyEntry,
  policyDeletedEvent,
  policyFromFacts,
  policyOfEvent,
  policySetEvent,
} from "./policy-events.ts";

const BY = { actor: "token:t", message: "why" };
const gpus: PolicyEntry = {
  kind: "group",
  group: {
    name: "gpus",
    priority: 3,
    selector: [{ operator: "in", key: "gpu", values: ["a100", "h100"] }],
    override: { unhealthyAfterMs: 30_000, unhealthyAfterMissed: null },
  },
};

describe("policySetEvent()", () => {
  it("should carry the whole policy, before and after", () => {
    const before: PolicyEntry = { kind: "default", override: { infoIntervalMs: 1_000 } };
    const after: PolicyEntry = { kind: "default", override: { unhealthyAfterMs: 30_000 } };
    expect(policySetEvent(before, after, BY)).toEqual({
      type: "policy.health.set",
      subject: "health-policy/default",
      actor: "token:t",
      reason: "OPERATOR_SET",
      message: "why",
      before: { values: { infoIntervalMs: 1_000 } },
      after: { values: { unhealthyAfterMs: 30_000 } },
    });
  });
});

describe("policyOfEvent()", () => {
  it.each<[string, PolicyEntry]>([
    ["all nodes", { kind: "default", override: { usageIntervalMs: 1_000 } }],
    ["a group", gpus],
    ["a node", { kind: "node", nodeId: "a.b-c", override: { unknownAfterMissed: null } }],
  ])("should read back %s as it was written", (_, entry) => {
    expect(policyOfEvent(policySetEvent(null, entry, BY))?.entry).toEqual(entry);
    expect(policyOfEvent(policyDeletedEvent(entry, BY))?.entry).toBeNull();
  });

  it("should say nothing of other events", () => {
    expect(policyOfEvent({ type: "node.approved", subject: "n1", after: null })).toBeNull();
  });
});

describe("policyFromFacts()", () => {
  it("should leave out what a newer release has written", () => {
    const facts = { values: { unhealthyAfterMs: 1, tomorrow: true } };
    expect(policyFromFacts({ kind: "default" }, facts)).toEqual({
      kind: "default",
      override: { unhealthyAfterMs: 1 },
    });
  });

  it.each([[null], [7], [{ selector: "a in (", priority: 0, values: {} }], [{ selector: "a" }]])(
    "should take %j for no group",
    (facts) => {
      expect(policyFromFacts({ kind: "group", name: "g" }, facts)).toBeNull();
    },
  );
});

describe("isSamePolicyEntry()", () => {
  it("should compare the fields that are set, in any order", () => {
    const left: PolicyEntry = {
      kind: "default",
      override: { infoIntervalMs: 1, usageIntervalMs: 2 },
    };
    const right: PolicyEntry = {
      kind: "default",
      override: { usageIntervalMs: 2, infoIntervalMs: 1 },
    };
    expect(isSamePolicyEntry(left, right)).toBe(true);
    expect(isSamePolicyEntry(left, gpus)).toBe(false);
  });
});

describe("formatPolicyScope()", () => {
  it.each<[PolicyScope, string, string]>([
    [{ kind: "default" }, "health-policy/default", "all nodes"],
    [{ kind: "group", name: "g" }, "health-policy/group/g", "group g"],
    [{ kind: "node", nodeId: "n.1" }, "health-policy/node/n.1", "node n.1"],
  ])("should write %j as %s", (scope, text, words) => {
    expect(formatPolicyScope(scope)).toBe(text);
    expect(parsePolicyScope(text)).toEqual(scope);
    expect(describePolicyScope(scope)).toBe(words);
  });

  it.each(["n1", "health-policy/", "health-policy/group/", "health-policy/other/x"])("should not read %j", (text) => {
    expect(parsePolicyScope(text)).toBeNull();
  });
});

describe("changePolicy()", () => {
  const wanted: PolicyEntry = { kind: "default", override: { infoIntervalMs: 1_000 } };

  it("should not change a policy that is as wanted", () => {
    expect(changePolicy({ ...wanted, override: { infoIntervalMs: 1_000 } }, wanted, BY)).toEqual({
      effects: [],
      events: [],
    });
  });

  it.each([[null], [{ kind: "default", override: { infoIntervalMs: 2_000 } } as const]])(
    "should save a policy that is not: %j",
    (before) => {
      expect(changePolicy(before, wanted, BY)).toEqual({
        effects: [wanted],
        events: [policySetEvent(before, wanted, BY)],
      });
    },
  );
});

describe("isSamePolicies()", () => {
  const node = (nodeId: string, infoIntervalMs: number) =>
    ({ kind: "node", nodeId, override: { infoIntervalMs } }) as const;
  const all = [{ kind: "default", override: { infoIntervalMs: 1 } } as const, gpus, node("a", 1), node("b", 2)];

  it("should not depend on the order", () => {
    expect(isSamePolicies(collectPolicies(all), collectPolicies(all.toReversed()))).toBe(true);
  });

  it.each([
    ["without the default", all.slice(1)],
    ["without the group", all.filter(({ kind }) => kind !== "group")],
    ["without a node", all.slice(0, 3)],
    ["with another value", [...all.slice(0, 3), node("b", 3)]],
    ["with another default", [{ kind: "default", override: { infoIntervalMs: 2 } } as const, ...all.slice(1)]],
  ])("should distinguish policies %s", (_, others) => {
    expect(isSamePolicies(collectPolicies(all), collectPolicies(others))).toBe(false);
  });
});

describe("policyDeletedEvent()", () => {
  it("should say whole what the policy was", () => {
    expect(policyDeletedEvent(gpus, BY)).toMatchObject({
      ...{ type: "policy.health.deleted", subject: "health-policy/group/gpus", reason: "OPERATOR_DELETED" },
      ...{ before: { priority: 3, selector: "gpu in (a100,h100)" }, after: null },
    });
  });
});
