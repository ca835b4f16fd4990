import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { keyFingerprint } from "@rollcall/identity";
import {
  currentRevision,
  findBans,
  getNode,
  insertBan,
  lockBans,
  lockNode,
  removeNode,
  type Store,
} from "@rollcall/store";
import { createTestDatabase, refusalOf, saveMembership } from "@rollcall/testkit";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

/** Ban as admin does: with the lock on all bans, and on the node if it exists. */
async function ban(store: Store, { id, keyPair }: TestNode, reason = "stolen"): Promise<void> {
  const fingerprint = keyFingerprint(keyPair.publicKey);
  await store.transaction(async (tx) => {
    await lockBans(tx);
    const node = await lockNode(tx, id);
    if (node !== null) {
      const said = { reason: "OPERATOR_BANNED", message: reason, actor: "token:t", sinceMs: 0 };
      await saveMembership(tx, id, { state: "REJECTED", ...said });
    }
    await insertBan(tx, { nodeId: id, fingerprint, reason, actor: "token:t" });
  });
}

describe("registerNode(), bans", () => {
  it("should refuse a banned node: by name, by key under any name, and by name with another key", async () => {
    const node = new TestNode("thief");
    await node.register(rig.registry);
    await ban(rig.store, node);
    const asItself = await refusalOf(node.register(rig.registry));
    expect(asItself).toMatchObject({ code: Code.PermissionDenied, reason: "NODE_BANNED" });
    expect(asItself.message).toContain("stolen");
    await rig.store.change(async (tx) => {
      const found = await lockNode(tx, "thief");
      if (found !== null) await removeNode(tx, found, { actor: "token:t", reason: "X" });
      return { result: null, events: [] };
    });
    const attempts = [node, new TestNode("innocent", node.keyPair), new TestNode("thief")];
    for (const attempt of attempts) {
      expect(await refusalOf(attempt.register(rig.registry))).toMatchObject({
        reason: "NODE_BANNED",
        // `logId` shows the machine which of its executions have ended.
        metadata: { banReason: "stolen", logId: rig.store.logId() },
      });
      expect(await getNode(rig.store.db, attempt.id)).toBeNull();
    }
    expect(await new TestNode("honest").register(rig.registry)).toMatchObject({ created: true });
  });

  it("should not be evaded by a different case of the banned id", async () => {
    await ban(rig.store, new TestNode("Banned-In-Advance"));
    expect(await refusalOf(new TestNode("banned-in-advance").register(rig.registry))).toMatchObject({
      reason: "NODE_BANNED",
      metadata: { node: "banned-in-advance", banReason: "stolen" },
    });
  });

  it("should never admit a node during a concurrent ban of it", async () => {
    const nodes = Array.from({ length: 60 }, (_, index) => new TestNode(`slippery-${index}`));
    await Promise.all(
      nodes.map(async (node, index) => {
        const registration = rig.registry.registerNode(node.joiningAny(rig.store)).then(
          () => "joined",
          (error: unknown) => reasonOf(error),
        );
        for (let query = 0; query < index % 12; query += 1) await currentRevision(rig.store.db);
        await ban(rig.store, node);
        const word = await registration;
        const after = await getNode(rig.store.db, node.id);
        // Either the node joined first and the ban rejected it, or the node was banned first and never joined.
        if (word === "joined") expect(after?.membership.state).toBe("REJECTED");
        else expect([word, after]).toEqual(["NODE_BANNED", null]);
        const names = { nodeIds: [node.id], fingerprints: [] };
        expect(await findBans(rig.store.db, names)).toHaveLength(1);
      }),
    );
  });
});
