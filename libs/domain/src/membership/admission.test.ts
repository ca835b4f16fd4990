import { describe, expect, it } from "@jest/globals";
import type { MembershipState } from "../states.ts";
import { type AdmissionFacts, Admissions, type GivenJoinToken, type JoiningToken } from "./admission.ts";

const TOKEN: JoiningToken = {
  ...{ id: "t1", maxUses: 2, uses: 1, isExpired: false, revocation: null, nodeNamePattern: "" },
  ...{ labels: {}, preauthorized: true, ephemeral: false },
};
const PLAIN: JoiningToken = { ...TOKEN, id: "t2", preauthorized: false };
const FACTS: AdmissionFacts = {
  tokens: new Map([
    ["t1", TOKEN],
    ["t2", PLAIN],
  ]),
  enforcement: "none",
  cluster: "c1c1c1c1",
};
const MALFORMED: GivenJoinToken = { kind: "malformed" };
const FOREIGN: GivenJoinToken = { kind: "foreign", cluster: "c2c2c2c2" };
const own = (id: string, isGenuine = true): GivenJoinToken => ({ kind: "own", id, isGenuine });

/**
 * Evaluate a machine. Returns the id of the admitting token, "none" if no token is needed, or the reason of the
 * refusal.
 */
function evaluated(
  given: GivenJoinToken | null,
  membership: MembershipState | null,
  facts: Partial<AdmissionFacts> = {},
) {
  const admission = new Admissions({ ...FACTS, ...facts }).evaluate({ nodeId: "n1", given, membership });
  return admission.ok ? (admission.token?.id ?? "none") : admission.refusal.reason;
}

describe("Admissions.evaluate()", () => {
  it.each([
    [null, "none", "none"],
    [null, "warn", "none"],
    [null, "strict", "JOIN_TOKEN_REQUIRED"],
    [own("t1"), "strict", "t1"],
    [own("t2"), "none", "t2"],
    [own("t1", false), "none", "JOIN_TOKEN_INVALID"],
    [own("t9"), "none", "JOIN_TOKEN_INVALID"],
    [MALFORMED, "none", "JOIN_TOKEN_INVALID"],
    [FOREIGN, "none", "JOIN_TOKEN_WRONG_CLUSTER"],
  ] as const)("should evaluate a new machine with %j if enforcement is %s: %s", (given, enforcement, expected) => {
    expect(evaluated(given, null, { enforcement })).toBe(expected);
  });

  it.each([
    ["PENDING", own("t1"), "t1"],
    ["PENDING", own("t2"), "none"],
    ["PENDING", own("t9"), "none"],
    ["PENDING", MALFORMED, "none"],
    ["PENDING", null, "none"],
    ["APPROVED", own("t1"), "none"],
    ["REJECTED", own("t1"), "none"],
    ["APPROVED", null, "none"],
  ] as const)("should refuse no machine that is known: %s with %j", (membership, given, expected) => {
    expect(evaluated(given, membership, { enforcement: "strict" })).toBe(expected);
  });

  it("should find used what an earlier one of the batch has used", () => {
    const admissions = new Admissions(FACTS);
    const evaluate = () => admissions.evaluate({ nodeId: "n1", given: own("t1"), membership: null });
    expect(evaluate()).toEqual({ ok: true, token: TOKEN, account: null });
    admissions.use(PLAIN);
    expect(evaluate().ok).toBe(true);
    admissions.use(TOKEN);
    expect(evaluate()).toMatchObject({ ok: false, refusal: { reason: "JOIN_TOKEN_USED_UP" } });
  });

  it("should name both clusters for a token of another one", () => {
    const admission = new Admissions(FACTS).evaluate({ nodeId: "n1", given: FOREIGN, membership: null });
    expect(admission).toMatchObject({
      refusal: { metadata: { node: "n1", tokenCluster: "c2c2c2c2", cluster: "c1c1c1c1" } },
    });
  });
});
