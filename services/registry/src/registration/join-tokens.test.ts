import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { joinTokenText } from "@rollcall/domain";
import { reasonOf } from "@rollcall/errors";
import { renderMetrics } from "@rollcall/process";
import { getJoinToken, getNode, lastUsesOf } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { expireToken, type MadeToken, makeToken, revokeToken } from "../testing/join-tokens.ts";
import { operate } from "../testing/operator.ts";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

/** One registry for each enforcement mode. In the strict and the manual one, nodes wait for approval. */
let rig: Rig;
let warning: Rig;
let strict: Rig;
let manual: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  const { store } = rig;
  const enforcing = (word: "warn" | "strict") =>
    startRig({ store }, { config: { "Orchestrator.NodeManager.JoinTokens": word } });
  warning = await enforcing("warn");
  strict = await enforcing("strict");
  manual = await startRig({ store }, { config: { "Orchestrator.NodeManager.ManualApproval": true } });
});
afterAll(async () => {
  await Promise.all([warning.close(), strict.close(), manual.close()]);
  await rig.close();
});

function register(at: Rig, node: TestNode, joinToken = "") {
  return at.registry.registerNode({ ...node.joiningAny(rig.store), joinToken });
}

/** The result of a registration in one word. */
function wordOf(call: Promise<{ readonly created: boolean }>): Promise<string> {
  return call.then(
    ({ created }) => (created ? "created" : "returned"),
    (error: unknown) => reasonOf(error) ?? String(error),
  );
}

async function usesOf({ id }: MadeToken): Promise<number | undefined> {
  return (await getJoinToken(rig.store.db, id))?.uses;
}

let nodes = 0;
function newNode(name = "n"): TestNode {
  nodes += 1;
  return new TestNode(`${name}-${nodes}`);
}

/** Tokens that admit no node under any enforcement. */
const BAD: readonly (readonly [string, string, () => Promise<string>])[] = [
  ["malformed", "JOIN_TOKEN_INVALID", async () => "letmein"],
  ["unknown", "JOIN_TOKEN_INVALID", async () => joinTokenText(rig.store.clusterId(), "0123456789ab", "x".repeat(43))],
  [
    "known with another secret",
    "JOIN_TOKEN_INVALID",
    async () => joinTokenText(rig.store.clusterId(), (await makeToken(rig.store)).id, "x".repeat(43)),
  ],
  [
    "another cluster's",
    "JOIN_TOKEN_WRONG_CLUSTER",
    async () => joinTokenText("ffffffff-0000", "0123456789ab", "x".repeat(43)),
  ],
  [
    "expired",
    "JOIN_TOKEN_EXPIRED",
    async () => {
      const { id, text } = await makeToken(rig.store);
      await expireToken(rig.store, id);
      return text;
    },
  ],
  [
    "revoked",
    "JOIN_TOKEN_REVOKED",
    async () => {
      const { id, text } = await makeToken(rig.store);
      await revokeToken(rig.store, id);
      return text;
    },
  ],
  [
    "used up",
    "JOIN_TOKEN_USED_UP",
    async () => {
      const { text } = await makeToken(rig.store, { maxUses: 2 });
      await register(rig, newNode(), text);
      await register(rig, newNode(), text);
      return text;
    },
  ],
  [
    "for other names",
    "JOIN_TOKEN_NAME_MISMATCH",
    async () => (await makeToken(rig.store, { nodeNamePattern: "gpu-?" })).text,
  ],
];

describe("registerNode() with a join token", () => {
  it.each(BAD)("should refuse a new node whose token is %s", async (_, reason, make) => {
    const text = await make();
    for (const at of [rig, warning, strict, manual]) {
      const node = newNode("refused");
      const before = await rig.store.db.selectFrom("join_token_uses").selectAll().execute();
      const error: unknown = await register(at, node, text).catch((given: unknown) => given);
      expect(reasonOf(error)).toBe(reason);
      expect(String(error)).not.toContain(text);
      expect(await getNode(rig.store.db, node.id)).toBeNull();
      expect(await eventsOf(rig.store, node.id)).toEqual([]);
      const after = await rig.store.db.selectFrom("join_token_uses").selectAll().execute();
      expect(after).toEqual(before);
    }
  });

  it.each(BAD)("should admit a known node whose token is %s", async (_, __, make) => {
    const node = newNode("known");
    await register(rig, node);
    const text = await make();
    expect(await wordOf(register(strict, node, text))).toBe("returned");
  });

  it("should require one from new nodes in strict mode, but not from known ones", async () => {
    const [unknown, known] = [newNode("unknown"), newNode("known")];
    await register(rig, known);
    expect(await wordOf(register(strict, unknown))).toBe("JOIN_TOKEN_REQUIRED");
    const refusals = 'rollcall_join_token_refusals_total{reason="JOIN_TOKEN_REQUIRED"} 1';
    expect(await renderMetrics(strict.metrics)).toContain(refusals);
    expect(await getNode(rig.store.db, unknown.id)).toBeNull();
    expect(await wordOf(register(strict, known))).toBe("returned");
    const { text } = await makeToken(rig.store);
    expect(await wordOf(register(strict, unknown, text))).toBe("created");
  });

  it("should name the nodes that joined without one if that is a warning", async () => {
    const [without, withOne, unwarned] = [newNode(), newNode(), newNode()];
    await register(warning, without);
    await register(warning, withOne, (await makeToken(rig.store)).text);
    await register(rig, unwarned);
    const marks = await Promise.all(
      [without, withOne, unwarned].map(async ({ id }) => {
        const node = await getNode(rig.store.db, id);
        return node?.joining.withoutToken;
      }),
    );
    expect(marks).toEqual([true, false, false]);
    const metrics = await renderMetrics(warning.metrics);
    expect(metrics).toContain("rollcall_joined_without_token_total 1");
    const { joining } = await warning.registry.getControlPlaneStatus({});
    expect(joining?.joinedWithoutTokenIds).toContain(without.id);
    expect(joining?.joinedWithoutTokenIds).not.toContain(unwarned.id);
  });

  it("should approve in advance under manual approval, and record which token did", async () => {
    const node = newNode();
    const labels = { zone: "a", "rollcall.io/group": "edge" };
    const terms = { preauthorized: true, ephemeral: true, labels, nodeNamePattern: "n-*" };
    const { id, text } = await makeToken(rig.store, terms);
    const answer = await register(manual, node, text);
    expect(answer.node).toMatchObject({ joinTokenId: id, ephemeral: true });
    const kept = await getNode(rig.store.db, node.id);
    const actor = `join-token:${id}`;
    expect(kept?.membership).toMatchObject({ state: "APPROVED", reason: "JOIN_TOKEN", actor });
    expect(kept?.labels).toEqual([
      { key: "rollcall.io/group", value: "edge", tier: "token" },
      { key: "zone", value: "a", tier: "token" },
    ]);
    expect(await eventsOf(rig.store, node.id)).toMatchObject([
      { type: "node.registered", reason: "JOIN_TOKEN", after: { joinToken: id } },
    ]);
    const fingerprint = kept?.keyFingerprint;
    expect(await lastUsesOf(rig.store.db, id, 10)).toMatchObject([{ nodeId: node.id, fingerprint }]);
  });

  it("should leave approval to an operator when the token does", async () => {
    const node = newNode();
    const { id, text } = await makeToken(rig.store);
    await register(manual, node, text);
    const kept = await getNode(rig.store.db, node.id);
    expect(kept).toMatchObject({ membership: { state: "PENDING" }, joining: { tokenId: id } });
  });

  it("should let the token's labels override the node's own", async () => {
    const node = newNode();
    const { text } = await makeToken(rig.store, { labels: { zone: "token" } });
    const info = { labels: { zone: "agent", rack: "7" } };
    await rig.registry.registerNode({ ...node.joiningAny(rig.store, info), joinToken: text });
    const { node: shown } = await rig.registry.getNode({ node: node.id });
    expect(shown?.labels.map(({ key, value }) => [key, value])).toEqual([
      ["rack", "7"],
      ["zone", "token"],
    ]);
  });

  it("should approve a pending node that returns with one", async () => {
    const node = newNode("waiting");
    await register(manual, node);
    const weak = await makeToken(rig.store);
    await register(manual, node, weak.text);
    expect((await getNode(rig.store.db, node.id))?.membership.state).toBe("PENDING");
    expect(await usesOf(weak)).toBe(0);

    const strong = await makeToken(rig.store, { preauthorized: true, labels: { zone: "b" } });
    await register(manual, node, strong.text);
    await register(manual, node, strong.text);
    const kept = await getNode(rig.store.db, node.id);
    expect(kept).toMatchObject({
      membership: { state: "APPROVED", reason: "JOIN_TOKEN", actor: `join-token:${strong.id}` },
      labels: [{ key: "zone", value: "b", tier: "token" }],
      joining: { tokenId: strong.id },
    });
    expect(await usesOf(strong)).toBe(1);
    expect(await eventsOf(rig.store, node.id)).toMatchObject([
      { type: "node.registered" },
      { type: "node.approved", reason: "JOIN_TOKEN", after: { joinToken: strong.id } },
      { type: "node.labels.changed", reason: "JOIN_TOKEN" },
    ]);
  });

  it("should never readmit a rejected node", async () => {
    const node = newNode("rejected");
    await register(rig, node);
    await operate(rig.store, node.id, "reject", "noise");
    const token = await makeToken(rig.store, { preauthorized: true });
    expect(await wordOf(register(rig, node, token.text))).toBe("NODE_REJECTED");
    expect(await usesOf(token)).toBe(0);
  });

  it("should count the same node again as the same use, and a deleted one as another", async () => {
    const node = newNode("again");
    const token = await makeToken(rig.store);
    const words = [];
    for (let time = 0; time < 3; time += 1) words.push(await wordOf(register(strict, node, token.text)));
    expect(words).toEqual(["created", "returned", "returned"]);
    expect(await usesOf(token)).toBe(1);
    await operate(rig.store, node.id, "delete");
    expect(await wordOf(register(strict, node, token.text))).toBe("JOIN_TOKEN_USED_UP");
  });
});
