import { describe, expect, it } from "@jest/globals";
import { decideMembership } from "./membership.ts";
import { accountTokenInvalid, evaluateAccount, provesNode, serviceAccountIn } from "./service-account.ts";

/** Claims as Kubernetes writes them into a pod's projected token. */
const CLAIMS = {
  sub: "system:serviceaccount:fleet:agent",
  "kubernetes.io": {
    namespace: "fleet",
    node: { name: "worker-1", uid: "1b7f" },
    pod: { name: "agent-x7k2p", uid: "55aa" },
    serviceaccount: { name: "agent", uid: "77bb" },
  },
};
const ACCOUNT = { namespace: "fleet", name: "agent", node: "worker-1" };
const BY = { actor: "system", message: "", atMs: 7 };

describe("serviceAccountIn()", () => {
  it("should read the claims of a pod's token", () => {
    expect(serviceAccountIn(CLAIMS)).toEqual(ACCOUNT);
  });

  it("should read one that names no node, as older clusters write it", () => {
    const { node: _, ...own } = CLAIMS["kubernetes.io"];
    expect(serviceAccountIn({ "kubernetes.io": own })).toEqual({ ...ACCOUNT, node: null });
  });

  it.each([
    [{}],
    [{ "kubernetes.io": null }],
    [{ "kubernetes.io": "fleet/agent" }],
    [{ "kubernetes.io": { namespace: "fleet" } }],
    [{ "kubernetes.io": { namespace: "fleet", serviceaccount: "agent" } }],
    [{ "kubernetes.io": { namespace: 7, serviceaccount: { name: "agent" } } }],
    [{ "kubernetes.io": { namespace: "", serviceaccount: { name: "agent" } } }],
    [{ sub: "system:serviceaccount:fleet:agent" }],
  ])("should find no account in %j", (claims) => {
    expect(serviceAccountIn(claims)).toBeNull();
  });
});

describe("evaluateAccount()", () => {
  it("should admit an account that is named", () => {
    expect(evaluateAccount(CLAIMS, ["other/agent", "fleet/agent"], "worker-1")).toEqual({
      kind: "account",
      account: ACCOUNT,
    });
  });

  it.each([[[]], [["fleet/other"]], [["other/agent"]], [["fleet/agen"]]])(
    "should refuse it where %j are",
    (admitted) => {
      expect(evaluateAccount(CLAIMS, admitted, "worker-1")).toMatchObject({
        kind: "refused-account",
        refusal: { reason: "SERVICE_ACCOUNT_NOT_ADMITTED", metadata: { serviceAccount: "fleet/agent" } },
      });
    },
  );

  it("should refuse the token of anything else", () => {
    const refused = { kind: "refused-account", refusal: { reason: "SERVICE_ACCOUNT_TOKEN_INVALID" } };
    expect(evaluateAccount({ sub: "alice" }, ["fleet/agent"], "worker-1")).toMatchObject(refused);
    expect(accountTokenInvalid("worker-1", "it has expired")).toMatchObject(refused);
  });
});

describe("provesNode()", () => {
  it.each([
    ["worker-1", true],
    ["Worker-1", false],
    ["worker-2", false],
    ["", false],
  ])("should compare the node's id %s exactly", (nodeId, isProven) => {
    expect(provesNode(ACCOUNT, nodeId)).toBe(isProven);
    expect(provesNode({ ...ACCOUNT, node: null }, nodeId)).toBe(false);
  });
});

describe("decideMembership() with a service account", () => {
  it.each([true, false])("should approve the node that it proves, manual approval %s", (manualApproval) => {
    const decision = decideMembership(null, "worker-1", { kind: "register", manualApproval, account: ACCOUNT }, BY);
    const next = { state: "APPROVED", reason: "SERVICE_ACCOUNT", actor: "service-account:fleet/agent", sinceMs: 7 };
    expect(decision).toMatchObject({ ok: true, outcome: "REGISTERED", next, event: "node.registered" });
  });

  it.each([
    ["worker-1", "belongs to node worker-1"],
    [null, "does not name a node"],
  ])("should let any other wait, manual approval or not (%s)", (node, why) => {
    const account = { ...ACCOUNT, node };
    const decision = decideMembership(null, "worker-2", { kind: "register", manualApproval: false, account }, BY);
    const next = { state: "PENDING", reason: "APPROVAL_REQUIRED", message: expect.stringContaining(why) };
    expect(decision).toMatchObject({ ok: true, outcome: "REGISTERED", next });
  });

  it("should approve a node that waits, and bring no rejected one back", () => {
    const command = { kind: "register", manualApproval: true, account: ACCOUNT } as const;
    const node = (state: "PENDING" | "REJECTED") => ({
      type: "COMPUTE" as const,
      alive: false,
      membership: { state, sinceMs: 0, reason: "X", message: "", actor: "a" },
    });
    expect(decideMembership(node("PENDING"), "worker-1", command, BY)).toMatchObject({
      ok: true,
      outcome: "APPROVED",
      event: "node.approved",
    });
    expect(decideMembership(node("PENDING"), "worker-2", command, BY)).toMatchObject({ outcome: "RECONNECTED" });
    expect(decideMembership(node("REJECTED"), "worker-1", command, BY)).toMatchObject({
      ok: false,
      refusal: { reason: "NODE_REJECTED" },
    });
  });
});
