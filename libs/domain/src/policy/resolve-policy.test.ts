import { describe, expect, it } from "@jest/globals";
import { collectPolicies, type GroupPolicy, type PolicyOverride } from "./health-policies.ts";
import { DEFAULT_HEALTH_POLICY } from "./policy.ts";
import type { HealthPolicy } from "./policy-fields.ts";
import { PolicyResolver, type PolicySubject } from "./resolve-policy.ts";

const plain: PolicySubject = { id: "n1", labels: new Map() };
const gpu: PolicySubject = { id: "n1", labels: new Map([["gpu", "h100"]]) };

function group(name: string, priority: number, override: PolicyOverride): GroupPolicy {
  return { name, priority, selector: [{ operator: "exists", key: "gpu" }], override };
}

function policiesOf(options: {
  readonly default?: PolicyOverride;
  readonly groups?: readonly GroupPolicy[];
  readonly node?: PolicyOverride;
}) {
  const { default: defaults, groups = [], node } = options;
  return collectPolicies([
    ...(defaults === undefined ? [] : [{ kind: "default", override: defaults } as const]),
    ...groups.map((it) => ({ kind: "group", group: it }) as const),
    ...(node === undefined ? [] : [{ kind: "node", nodeId: "n1", override: node } as const]),
  ]);
}

const policy = (override: PolicyOverride): HealthPolicy => ({
  ...DEFAULT_HEALTH_POLICY,
  ...override,
});

describe("PolicyResolver.resolve()", () => {
  it("should be the configuration where nothing else is said", () => {
    const resolved = new PolicyResolver(DEFAULT_HEALTH_POLICY, policiesOf({})).resolve(plain);
    expect(resolved.policy).toEqual(DEFAULT_HEALTH_POLICY);
    const kinds = new Set(Object.values(resolved.sources).map(({ kind }) => kind));
    expect(kinds).toEqual(new Set(["configuration"]));
    expect(resolved.layers).toEqual([]);
  });

  it("should report the origin of each field", () => {
    const policies = policiesOf({
      default: { infoIntervalMs: 5_000, unhealthyAfterMs: 45_000 },
      groups: [group("gpus", 1, { unhealthyAfterMs: 30_000, unknownAfterMs: 90_000 })],
      node: { unknownAfterMs: 120_000 },
    });
    const resolved = new PolicyResolver(DEFAULT_HEALTH_POLICY, policies).resolve(gpu);
    expect(resolved.policy).toEqual(
      policy({ infoIntervalMs: 5_000, unhealthyAfterMs: 30_000, unknownAfterMs: 120_000 }),
    );
    expect(resolved.sources).toMatchObject({
      infoIntervalMs: { kind: "default" },
      unhealthyAfterMs: { kind: "group", name: "gpus" },
      unknownAfterMs: { kind: "node", nodeId: "n1" },
      heartbeatIntervalMs: { kind: "configuration" },
    });
  });

  it("should leave out groups whose selector does not match, and other nodes' policies", () => {
    const policies = policiesOf({
      groups: [group("gpus", 1, { unhealthyAfterMs: 30_000 })],
      node: { infoIntervalMs: 1 },
    });
    const other = { id: "n2", labels: new Map() };
    expect(new PolicyResolver(DEFAULT_HEALTH_POLICY, policies).resolve(other).policy).toEqual(DEFAULT_HEALTH_POLICY);
  });

  it("should let null override a number", () => {
    const policies = policiesOf({ groups: [group("gpus", 1, { unhealthyAfterMissed: null })] });
    const { policy: resolved } = new PolicyResolver(policy({ unhealthyAfterMissed: 4 }), policies).resolve(gpu);
    expect(resolved.unhealthyAfterMissed).toBeNull();
  });

  it.each<[string, number, number, string]>([
    ["the greater priority", 1, 2, "b"],
    ["the greater priority", 2, 1, "a"],
    ["the first by name among equals", 1, 1, "a"],
  ])("should prefer %s: a of %d, b of %d, so %s", (_, priorityA, priorityB, name) => {
    const a = group("a", priorityA, { infoIntervalMs: 1000 });
    const b = group("b", priorityB, { infoIntervalMs: 2000 });
    for (const groups of [
      [a, b],
      [b, a],
    ]) {
      const { sources } = new PolicyResolver(DEFAULT_HEALTH_POLICY, policiesOf({ groups })).resolve(gpu);
      expect(sources.infoIntervalMs).toEqual({ kind: "group", name });
    }
  });
});

describe("PolicyResolver", () => {
  it("should answer the same object where the same policies meet", () => {
    const policies = policiesOf({ groups: [group("gpus", 1, {})] });
    const resolver = new PolicyResolver(DEFAULT_HEALTH_POLICY, policies);
    expect(resolver.resolve(gpu)).toBe(resolver.resolve({ ...gpu, id: "n2" }));
    expect(resolver.resolve(plain)).not.toBe(resolver.resolve(gpu));
  });
});
