import { describe, expect, it } from "@jest/globals";
import { collectPolicies, type PolicyOverride } from "../policy/health-policies.ts";
import { DEFAULT_HEALTH_POLICY } from "../policy/policy.ts";
import { PolicyResolver } from "../policy/resolve-policy.ts";
import { evidenceFacts, silenceEvidence } from "./health-evidence.ts";

/** Resolve the policy of a node with this override. */
function resolved(override: PolicyOverride) {
  const policies = collectPolicies([{ kind: "node", nodeId: "n1", override }]);
  return new PolicyResolver(DEFAULT_HEALTH_POLICY, policies).resolve({ id: "n1", labels: new Map() });
}

const VERDICT = {
  replica: "h1",
  to: "UNHEALTHY",
  lastReceivedAgoMs: 70_000.4,
  silentMs: 60_250.6,
  thresholdMs: 60_000,
  resolved: resolved({}),
} as const;

describe("silenceEvidence()", () => {
  it("should contain the counted, granted and allowed time, in whole milliseconds", () => {
    expect(silenceEvidence(VERDICT)).toEqual({
      replica: "h1",
      lastReceivedAgoMs: 70_000,
      silentMs: 60_251,
      thresholdMs: 60_000,
      grantedMs: 9_749,
      value: "unhealthyAfter",
      policy: "the configuration",
    });
  });

  it.each([
    [null, 0],
    [60_251, 0],
    [60_000, 0],
    [60_252, 1],
  ])("should have granted, when the last frame came %j ms ago, %d ms", (lastReceivedAgoMs, grantedMs) => {
    expect(silenceEvidence({ ...VERDICT, lastReceivedAgoMs })).toMatchObject({ lastReceivedAgoMs, grantedMs });
  });

  it.each([
    ["UNHEALTHY", 60_000, "unhealthyAfter", "the configuration"],
    ["UNHEALTHY", 59_999, "unhealthyAfterMissed", "node n1"],
    ["UNKNOWN", 300_000, "unknownAfter", "the configuration"],
    ["UNKNOWN", 299_999, "unknownAfterMissed", "node n1"],
  ] as const)("should name for %s after %d ms: %s of %s", (to, thresholdMs, value, policy) => {
    const own = resolved({ unhealthyAfterMissed: 3, unknownAfterMissed: 9 });
    expect(silenceEvidence({ ...VERDICT, to, thresholdMs, resolved: own })).toMatchObject({ value, policy });
  });
});

describe("evidenceFacts()", () => {
  it("should carry all of it", () => {
    const evidence = silenceEvidence(VERDICT);
    expect(evidenceFacts(evidence)).toEqual(evidence);
  });
});
