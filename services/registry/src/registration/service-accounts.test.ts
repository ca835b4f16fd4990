import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { getNode } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { TestIssuer, type TestTokenOptions } from "@rollcall/testkit/issuer";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

const issuer = new TestIssuer();
/** One registry that requires join tokens and approvals, and one that requires neither. */
let strict: Rig;
let open: Rig;
beforeAll(async () => {
  await issuer.start();
  const joining = {
    "Join.Kubernetes.Issuer": issuer.url,
    "Join.Kubernetes.ServiceAccounts": ["fleet/agent"],
  };
  const guarded = {
    "Orchestrator.NodeManager.JoinTokens": "strict",
    "Orchestrator.NodeManager.ManualApproval": true,
  } as const;
  strict = await startRig(await createTestDatabase(), { config: { ...joining, ...guarded } });
  open = await startRig(
    { store: strict.store },
    { config: { ...joining, "Orchestrator.NodeManager.JoinTokens": "warn" } },
  );
});
afterAll(async () => {
  await open.close();
  await strict.close();
  await issuer.stop();
});

/** The projected token of a pod on a node. */
function podToken(node: string | null, options: TestTokenOptions = {}, account = "agent"): Promise<string> {
  const own = { namespace: "fleet", pod: { name: "agent-1" }, serviceaccount: { name: account } };
  const claims = { "kubernetes.io": node === null ? own : { ...own, node: { name: node, uid: "u" } } };
  return issuer.token(claims, { audience: "rollcall-join", ...options });
}

function register(at: Rig, node: TestNode, joinToken: string) {
  return at.registry.registerNode({ ...node.joiningAny(at.store), joinToken });
}

async function wordOf(call: Promise<{ readonly created: boolean }>): Promise<string> {
  return call.then(
    ({ created }) => (created ? "created" : "returned"),
    (error: unknown) => reasonOf(error) ?? String(error),
  );
}

async function membershipOf({ id }: TestNode) {
  return (await getNode(strict.store.db, id))?.membership;
}

describe("registerNode() with a service account's token", () => {
  it("should approve the node that the token names, if tokens are required and nodes wait for approval", async () => {
    const node = new TestNode("worker-1");
    expect(await wordOf(register(strict, node, await podToken("worker-1")))).toBe("created");
    const actor = "service-account:fleet/agent";
    expect(await membershipOf(node)).toMatchObject({ state: "APPROVED", reason: "SERVICE_ACCOUNT", actor });
    expect(await eventsOf(strict.store, node.id)).toMatchObject([
      { type: "node.registered", reason: "SERVICE_ACCOUNT" },
    ]);
    const audited = await strict.store.db.selectFrom("audit_log").select(["target", "reason"]).execute();
    expect(audited).toContainEqual({ target: "worker-1", reason: "service account fleet/agent" });
  });

  it.each([
    ["of another node", "worker-9"],
    ["of no node", null],
  ])("should let a node with a token %s wait, everywhere", async (_, named) => {
    for (const at of [strict, open]) {
      const node = new TestNode(`waits-${named}-${at === strict}`);
      expect(await wordOf(register(at, node, await podToken(named)))).toBe("created");
      expect(await membershipOf(node)).toMatchObject({ state: "PENDING", reason: "APPROVAL_REQUIRED" });
    }
  });

  it("should approve a pending node that returns with its own", async () => {
    const node = new TestNode("worker-2");
    await register(strict, node, await podToken("worker-3"));
    expect((await membershipOf(node))?.state).toBe("PENDING");
    expect(await wordOf(register(strict, node, await podToken("worker-2")))).toBe("returned");
    expect((await membershipOf(node))?.state).toBe("APPROVED");
    const last = (await eventsOf(strict.store, node.id)).at(-1);
    expect(last).toMatchObject({
      type: "node.approved",
      reason: "SERVICE_ACCOUNT",
      actor: "service-account:fleet/agent",
    });
  });

  it("should not count it as one that joined without a token", async () => {
    const node = new TestNode("worker-4");
    await register(open, node, await podToken("worker-4"));
    expect((await getNode(open.store.db, node.id))?.joining.withoutToken).toBe(false);
  });

  it.each([
    ["of another account", "SERVICE_ACCOUNT_NOT_ADMITTED", () => podToken("bad", {}, "other")],
    ["for callers of Kubernetes", "SERVICE_ACCOUNT_TOKEN_INVALID", () => podToken("bad", { audience: "https://k8s" })],
    ["that has expired", "SERVICE_ACCOUNT_TOKEN_INVALID", () => podToken("bad", { expiresInS: -600 })],
    ["of another issuer", "SERVICE_ACCOUNT_TOKEN_INVALID", () => podToken("bad", { issuer: "https://elsewhere" })],
    [
      "with another signature",
      "SERVICE_ACCOUNT_TOKEN_INVALID",
      async () => (await podToken("bad")).replace(/\.[^.]*$/, `.${"A".repeat(86)}`),
    ],
    [
      "that ends beyond all times",
      "SERVICE_ACCOUNT_TOKEN_INVALID",
      async () => {
        const own = { namespace: "fleet", serviceaccount: { name: "agent" } };
        return issuer.token({ "kubernetes.io": own, exp: 1e300 }, { audience: "rollcall-join" });
      },
    ],
    [
      "of a person",
      "SERVICE_ACCOUNT_TOKEN_INVALID",
      () => issuer.token({ sub: "alice" }, { audience: "rollcall-join" }),
    ],
  ])("should refuse a new node with one %s, but admit a known one", async (what, reason, make) => {
    const text = await make();
    for (const at of [strict, open]) {
      const node = new TestNode("bad");
      const error: unknown = await register(at, node, text).catch((given: unknown) => given);
      expect(reasonOf(error)).toBe(reason);
      expect(String(error)).not.toContain(text);
      expect(await getNode(at.store.db, "bad")).toBeNull();
    }
    const known = new TestNode(`known-${what.replaceAll(" ", "-")}`);
    await register(open, known, "");
    expect(await wordOf(register(strict, known, text))).toBe("returned");
  });

  it("should accept join tokens, but no service account's token if no issuer is configured", async () => {
    const plain = await startRig({ store: strict.store });
    const token = await podToken("worker-5");
    expect(await wordOf(register(plain, new TestNode("worker-5"), token))).toBe("JOIN_TOKEN_INVALID");
    expect(await wordOf(register(strict, new TestNode("worker-5"), "letmein"))).toBe("JOIN_TOKEN_INVALID");
    await plain.close();
  });

  it("should report that it cannot verify while the issuer is unreachable, and admit known nodes", async () => {
    const away = new TestIssuer();
    await away.start();
    const config = { "Join.Kubernetes.Issuer": away.url, "Join.Kubernetes.ServiceAccounts": ["fleet/agent"] };
    const at = await startRig({ store: strict.store }, { config });
    const token = await away.token({}, { audience: "rollcall-join" });
    const known = new TestNode("known-before");
    await register(at, known, "");
    await away.stop();
    expect(await wordOf(register(at, new TestNode("new-now"), token))).toBe("ISSUER_UNAVAILABLE");
    expect(await wordOf(register(at, known, token))).toBe("returned");
    await at.close();
  });
});
