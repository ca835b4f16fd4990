import { describe, expect, it } from "@jest/globals";
import { parseSelector } from "../labels/parse-selector.ts";
import { formatSelector, type Selector } from "../labels/selectors.ts";
import {
  collectPolicies,
  MAX_GROUP_POLICIES,
  MAX_NODE_POLICIES,
  NO_HEALTH_POLICIES,
  type PolicyEntry,
} from "./health-policies.ts";
import {
  contradictionRefusal,
  editPolicy,
  type PolicyPart,
  type PolicyWish,
  policiesAfter,
  policyEtagRefusal,
  scopeOfEdit,
  tooManyPolicies,
} from "./policy-edit.ts";

const BY_DEFAULT = { kind: "default" } as const;
const GROUP = { kind: "group", name: "g" } as const;

function selector(text: string): Selector {
  const parsed = parseSelector(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.selector;
}

function wish(changes: Partial<Omit<PolicyWish, "parts">> & { readonly parts?: readonly PolicyPart[] }): PolicyWish {
  const { parts, ...rest } = changes;
  return { values: {}, selector: "", priority: 0, ...rest, parts: parts === undefined ? null : new Set(parts) };
}

const group: PolicyEntry = {
  kind: "group",
  group: { name: "g", priority: 5, selector: selector("gpu"), override: { unhealthyAfterMs: 1, unknownAfterMs: 2 } },
};

describe("editPolicy()", () => {
  it("should replace everything without a mask, and what the mask names with one", () => {
    const current = { ...BY_DEFAULT, override: { unhealthyAfterMs: 1, unknownAfterMs: 2 } };
    const values = { unhealthyAfterMs: 9 };
    expect(editPolicy(BY_DEFAULT, current, wish({ values }))).toMatchObject({ entry: { override: values } });
    expect(editPolicy(BY_DEFAULT, current, wish({ values, parts: ["unhealthyAfterMs"] }))).toEqual({
      ok: true,
      entry: { kind: "default", override: { unhealthyAfterMs: 9, unknownAfterMs: 2 } },
    });
    expect(editPolicy(BY_DEFAULT, current, wish({ parts: ["unknownAfterMs"] }))).toMatchObject({
      entry: { override: { unhealthyAfterMs: 1 } },
    });
  });

  it.each<[string, PolicyWish, number, string]>([
    ["nothing but values", wish({ values: { unknownAfterMs: 9 }, parts: ["unknownAfterMs"] }), 5, "gpu"],
    ["the priority", wish({ priority: 7, parts: ["priority"] }), 7, "gpu"],
    ["the selector", wish({ selector: "zone=a", parts: ["selector"] }), 5, "zone=a"],
    ["everything", wish({ values: { unknownAfterMs: 9 }, selector: "zone=a" }), 0, "zone=a"],
  ])("should change of a group %s", (_, wanted, priority, text) => {
    const edited = editPolicy(GROUP, group, wanted);
    if (!edited.ok || edited.entry.kind !== "group") throw new Error("no group came of it");
    expect(edited.entry.group.priority).toBe(priority);
    expect(formatSelector(edited.entry.group.selector)).toBe(text);
  });

  it.each<[string, PolicyWish, string, string]>([
    ["no value", wish({ selector: "gpu" }), "INVALID_REQUEST", "values"],
    ["no selector", wish({ values: { unknownAfterMs: 9 } }), "INVALID_REQUEST", "selector"],
    ["a broken selector", wish({ values: { unknownAfterMs: 9 }, selector: "a in" }), "INVALID_SELECTOR", "selector"],
  ])("should refuse a group with %s", (_, wanted, reason, field) => {
    expect(editPolicy(GROUP, null, wanted)).toMatchObject({ ok: false, flaw: { reason, field } });
  });

  it("should refuse selector and priority for anything but a group", () => {
    const values = { unknownAfterMs: 9 };
    expect(editPolicy(BY_DEFAULT, null, wish({ values, selector: "gpu" }))).toMatchObject({
      flaw: { field: "selector" },
    });
    expect(editPolicy(BY_DEFAULT, null, wish({ values, priority: 1 }))).toMatchObject({ flaw: { field: "priority" } });
  });
});

describe("tooManyPolicies()", () => {
  const nodes = (count: number) =>
    collectPolicies(
      Array.from(
        { length: count },
        (_, index): PolicyEntry => ({
          ...{ kind: "node", nodeId: `n${index}`, override: { unknownAfterMs: 9 } },
        }),
      ),
    );
  const groups = (count: number) =>
    collectPolicies(
      Array.from(
        { length: count },
        (_, index): PolicyEntry => ({
          kind: "group",
          group: { name: `g${index}`, priority: 0, selector: selector("a"), override: {} },
        }),
      ),
    );

  it("should refuse one more than there may be", () => {
    expect(tooManyPolicies(NO_HEALTH_POLICIES)).toBeNull();
    expect(tooManyPolicies(nodes(MAX_NODE_POLICIES))).toBeNull();
    expect(tooManyPolicies(nodes(MAX_NODE_POLICIES + 1))).toMatchObject({ reason: "TOO_MANY_HEALTH_POLICIES" });
    expect(tooManyPolicies(groups(MAX_GROUP_POLICIES))).toBeNull();
    expect(tooManyPolicies(groups(MAX_GROUP_POLICIES + 1))).toMatchObject({ metadata: { limit: "1000" } });
  });
});

describe("contradictionRefusal() and policyEtagRefusal()", () => {
  it("should name three contradictions and count the others", () => {
    const edit = { kind: "delete", scope: BY_DEFAULT } as const;
    expect(contradictionRefusal(edit, [])).toBeNull();
    const found = ["a", "b", "c", "d", "e"].map((combination) => ({ combination, problems: ["x", "y"] }));
    expect(contradictionRefusal(edit, found)).toMatchObject({
      named: ["a: x; y", "b: x; y", "c: x; y"],
      refusal: {
        message: expect.stringMatching(/cannot be deleted: a: x; y; b: x; y; c: x; y \(and 2 more\)$/),
        metadata: { combination: "a", combinations: "5" },
      },
    });
  });

  it("should refuse every etag but that of the policy and none", () => {
    expect(policyEtagRefusal(BY_DEFAULT, "e1", "")).toBeNull();
    expect(policyEtagRefusal(BY_DEFAULT, "e1", "e1")).toBeNull();
    expect(policyEtagRefusal(BY_DEFAULT, "e1", "e0")).toMatchObject({ metadata: { etag: "e1" } });
    expect(policyEtagRefusal(BY_DEFAULT, null, "e0")).toMatchObject({ metadata: { etag: "" } });
  });
});

describe("policiesAfter() and scopeOfEdit()", () => {
  const entry: PolicyEntry = { kind: "node", nodeId: "n1", override: { unknownAfterMs: 9 } };
  const scope = { kind: "node", nodeId: "n1" } as const;

  it("should set a policy, and delete it", () => {
    const set = policiesAfter(NO_HEALTH_POLICIES, { kind: "set", entry });
    expect([...set.nodes]).toEqual([["n1", { unknownAfterMs: 9 }]]);
    expect(policiesAfter(set, { kind: "delete", scope }).nodes.size).toBe(0);
    expect(scopeOfEdit({ kind: "set", entry })).toEqual(scope);
    expect(scopeOfEdit({ kind: "delete", scope })).toEqual(scope);
  });

  it("should name all contradictions where they are few, of a policy that is set", () => {
    const found = ["a", "b", "c"].map((combination) => ({ combination, problems: ["x"] }));
    expect(contradictionRefusal({ kind: "set", entry }, found)).toMatchObject({
      refusal: {
        reason: "HEALTH_POLICY_CONTRADICTION",
        message: "the health policy of node n1 cannot be set: a: x; b: x; c: x",
        metadata: { scope: "health-policy/node/n1" },
      },
    });
  });
});
