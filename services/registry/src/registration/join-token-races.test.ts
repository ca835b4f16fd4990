import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { getJoinToken, insertBan, lockBans } from "@rollcall/store";
import { createTestDatabase, seededRandom } from "@rollcall/testkit";
import { makeToken, revokeToken } from "../testing/join-tokens.ts";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

/** Three registry replicas with separate connections, like separate processes. */
let replicas: readonly Rig[];
let close: () => Promise<void>;
beforeAll(async () => {
  const database = await createTestDatabase();
  const config = { "Orchestrator.NodeManager.JoinTokens": "strict" } as const;
  const start = async () => startRig({ store: await database.openStore() }, { config });
  replicas = [await start(), await start(), await start()];
  close = async () => {
    await Promise.all(replicas.map((replica) => replica.close()));
    await database.drop();
  };
});
afterAll(() => close());

function replica(turn: number): Rig {
  const chosen = replicas[turn % replicas.length];
  if (chosen === undefined) throw new Error("there are no replicas");
  return chosen;
}

function register(turn: number, node: TestNode, joinToken: string): Promise<string> {
  const { registry, store } = replica(turn);
  return registry.registerNode({ ...node.joiningAny(store), joinToken }).then(
    ({ created }) => (created ? "created" : "returned"),
    (error: unknown) => reasonOf(error) ?? String(error),
  );
}

function testNodes(name: string, count: number): readonly TestNode[] {
  return Array.from({ length: count }, (_, index) => new TestNode(`${name}-${index}`));
}

function count(words: readonly string[], word: string): number {
  return words.filter((it) => it === word).length;
}

describe("registerNode(), races for join tokens", () => {
  it("should admit one of many with a single-use token, on any replica", async () => {
    const { store } = replica(0);
    for (let round = 0; round < 12; round += 1) {
      const { id, text } = await makeToken(store);
      const nodes = testNodes(`single-${round}`, 9);
      const words = await Promise.all(nodes.map((node, turn) => register(turn, node, text)));
      expect([count(words, "created"), count(words, "JOIN_TOKEN_USED_UP")]).toEqual([1, 8]);
      expect((await getJoinToken(store.db, id))?.uses).toBe(1);
      const logged = await Promise.all(nodes.map((node) => eventsOf(store, node.id)));
      expect(logged.flat()).toHaveLength(1);
    }
  });

  it("should count concurrent registrations of the same node as one use", async () => {
    const { store } = replica(0);
    for (let round = 0; round < 6; round += 1) {
      const { id, text } = await makeToken(store);
      const node = new TestNode(`same-${round}`);
      const words = await Promise.all([0, 1, 2, 0, 1, 2].map((turn) => register(turn, node, text)));
      expect([count(words, "created"), count(words, "returned")]).toEqual([1, 5]);
      expect((await getJoinToken(store.db, id))?.uses).toBe(1);
    }
  });

  it("should never admit more than a token allows, whatever a batch mixes", async () => {
    const { store } = replica(0);
    const seed = Date.now() % 1_000_000;
    const random = seededRandom(seed);
    const tokens = await Promise.all(
      [1, 2, 3, 5, 8, null].map(async (maxUses) => ({
        maxUses,
        ...(await makeToken(store, { maxUses })),
      })),
    );
    // Each replica gets the tokens in a different order. If a batch locked them in the order of its calls,
    // the replicas would deadlock.
    const words = await Promise.all(
      testNodes("mixed", 100).map(async (node, turn) => {
        const token = tokens[Math.floor(random() * tokens.length)];
        if (token === undefined) throw new Error("there are no tokens");
        return [token.id, await register(turn, node, token.text)] as const;
      }),
    );
    for (const { id, maxUses } of tokens) {
      const context = `seed ${seed}, ${maxUses ?? "unlimited"}`;
      const own = words.filter(([token]) => token === id).map(([, word]) => word);
      const admitted = Math.min(own.length, maxUses ?? own.length);
      const uses = (await getJoinToken(store.db, id))?.uses;
      const came = [context, count(own, "created"), count(own, "JOIN_TOKEN_USED_UP"), uses];
      expect(came).toEqual([context, admitted, own.length - admitted, admitted]);
    }
  });

  it.each([
    ["limited", 1_000],
    ["unlimited", null],
  ])("should admit no node with a revoked %s token, on any replica", async (name, maxUses) => {
    const { store } = replica(0);
    for (let round = 0; round < 6; round += 1) {
      const { id, text } = await makeToken(store, { maxUses });
      const before = testNodes(`${name}-before-${round}`, 6);
      const racing = before.map((node, turn) => register(turn, node, text));
      await revokeToken(store, id);
      const admitted = (await getJoinToken(store.db, id))?.uses;
      const after = testNodes(`${name}-after-${round}`, 6);
      const refused = await Promise.all(after.map((node, turn) => register(turn, node, text)));
      expect(new Set(refused)).toEqual(new Set(["JOIN_TOKEN_REVOKED"]));
      // Concurrent registrations were admitted only before the revocation.
      expect(count(await Promise.all(racing), "created")).toBe(admitted);
    }
  });

  it("should refuse a banned id and a banned key, whatever their token", async () => {
    const { store } = replica(0);
    const { text } = await makeToken(store, { maxUses: null, preauthorized: true });
    const nodeId = "banned-in-advance";
    await store.transaction(async (tx) => {
      await lockBans(tx);
      await insertBan(tx, { nodeId, fingerprint: null, reason: "stolen", actor: "token:x" });
    });
    for (const turn of [0, 1, 2]) {
      expect(await register(turn, new TestNode(nodeId), text)).toBe("NODE_BANNED");
    }
  });
});
