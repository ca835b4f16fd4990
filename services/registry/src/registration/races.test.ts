import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { currentRevision, getNode } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { seed } from "../testing/seed.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

const ROUNDS = 100;
let one: Rig;
let other: Rig;
beforeAll(async () => {
  one = await startRig(await createTestDatabase());
  other = await startRig({ store: one.store }, { config: { "Orchestrator.NodeManager.ManualApproval": true } });
});
afterAll(async () => {
  await other.close();
  await one.close();
});

/** The results of registrations in one word each. */
function wordsOf(calls: readonly Promise<{ readonly created: boolean }>[]) {
  const word = (call: Promise<{ readonly created: boolean }>) =>
    call.then(
      ({ created }) => (created ? "created" : "returned"),
      (error: unknown) => reasonOf(error) ?? String(error),
    );
  return Promise.all(calls.map(word));
}

/** Call a function for each node, ten at a time, so that their registrations share batches. */
async function inTens(
  nodes: readonly TestNode[],
  race: (node: TestNode, index: number) => Promise<void>,
): Promise<void> {
  for (let start = 0; start < nodes.length; start += 10) {
    const some = nodes.slice(start, start + 10);
    await Promise.all(some.map((node, index) => race(node, start + index)));
  }
}

function testNodes(name: string, count: number): readonly TestNode[] {
  return Array.from({ length: count }, (_, index) => new TestNode(`${name}-${index}`));
}

describe("registerNode(), races with operators", () => {
  it.each([
    ["approve", "APPROVED", ["returned"]],
    ["reject", "REJECTED", ["returned", "NODE_REJECTED"]],
  ] as const)("should never undo: %s", async (kind, state, possible) => {
    const nodes = testNodes(kind, ROUNDS);
    await seed(one.store, nodes, { manualApproval: true });
    await inTens(nodes, async (node, index) => {
      const news = { ...INFO, hostname: `news-${index}` };
      const requests = [node.joiningAny(one.store, news), node.joiningAny(one.store)] as const;
      const [words, done] = await Promise.all([
        wordsOf([one.registry.registerNode(requests[0]), other.registry.registerNode(requests[1])]),
        atSomeMoment(index, () => operate(one.store, node.id, kind, "because")),
      ]);
      expect(done).toBe(true);
      for (const word of words) expect(possible).toContain(word);
      const after = await getNode(one.store.db, node.id);
      expect(after?.membership).toMatchObject({ state, message: "because" });
    });
  });

  it("should never undo: delete", async () => {
    const nodes = testNodes("delete", ROUNDS);
    await seed(one.store, nodes);
    await inTens(nodes, async (node, index) => {
      const request = node.joiningAny(one.store);
      const [[word], done] = await Promise.all([
        wordsOf([other.registry.registerNode(request)]),
        atSomeMoment(index, () => operate(one.store, node.id, "delete")),
      ]);
      expect(done).toBe(true);
      const after = await getNode(one.store.db, node.id);
      // Either the node returned and was deleted afterwards, or it was deleted and then joined as a new pending
      // node.
      if (word === "returned") expect(after).toBeNull();
      else expect([word, after?.membership.state]).toEqual(["created", "PENDING"]);
      const types = (await eventsOf(one.store, node.id)).map(({ type }) => type);
      const joined = word === "returned" ? [] : ["node.registered"];
      expect(types).toEqual(["node.registered", "node.deleted", ...joined]);
    });
  });
});

/**
 * Act now, or a few queries later. A concurrent registration is then at different stages: just received,
 * waiting for its locks, or holding them.
 */
async function atSomeMoment<T>(index: number, act: () => Promise<T>): Promise<T> {
  for (let query = 0; query < index % 24; query += 1) await currentRevision(one.store.db);
  return act();
}

describe("registerNode(), races with itself", () => {
  it("should create a node once, in one registry or two", async () => {
    await inTens(testNodes("twice", 30), async (node) => {
      const words = await wordsOf(
        [one, other, one, other].map(({ registry }) => registry.registerNode(node.joiningAny(one.store))),
      );
      expect(words.toSorted()).toEqual(["created", "returned", "returned", "returned"]);
      expect(await eventsOf(one.store, node.id)).toHaveLength(1);
    });
  });

  it("should give a new id to one of two keys", async () => {
    await inTens(testNodes("claimed", 30), async (node) => {
      const rival = new TestNode(node.id);
      const words = await wordsOf([
        one.registry.registerNode(node.joiningAny(one.store)),
        other.registry.registerNode(rival.joiningAny(one.store)),
      ]);
      expect(words.toSorted()).toEqual(["NODE_KEY_MISMATCH", "created"]);
    });
  });
});
