import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/runtime";
import { getNode } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { eventsOf } from "../testing/record.ts";
import { refusalOf } from "../testing/refusal-of.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { INFO, TestNode } from "../testing/test-node.ts";

const ROUNDS = 100;
let one: Rig;
let other: Rig;
beforeAll(async () => {
  one = await startRig(await createTestDatabase());
  other = await startRig(
    { store: one.store },
    { config: { "Orchestrator.NodeManager.ManualApproval": true } },
  );
});
afterAll(async () => {
  await other.close();
  await one.close();
});

/** What came of registrations, in a word each. */
function wordsOf(calls: readonly Promise<{ readonly created: boolean }>[]) {
  const word = (call: Promise<{ readonly created: boolean }>) =>
    call.then(
      ({ created }) => (created ? "created" : "returned"),
      (error: unknown) => reasonOf(error) ?? String(error),
    );
  return Promise.all(calls.map(word));
}

describe("registerNode(), races with operators", () => {
  it.each([
    ["approve", "APPROVED", ["returned"]],
    ["reject", "REJECTED", ["returned", "NODE_REJECTED"]],
  ] as const)("should never undo: %s", async (kind, state, possible) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const node = new TestNode(`${kind}-${round}`);
      await node.register(other.registry);
      const news = { ...INFO, hostname: `news-${round}` };
      const requests = [await node.joining(one.registry, news), await node.joining(other.registry)];
      const [words, done] = await Promise.all([
        wordsOf([
          one.registry.registerNode(requests[0] ?? {}),
          other.registry.registerNode(requests[1] ?? {}),
        ]),
        operate(one.store, node.id, kind, "because"),
      ]);
      expect(done).toBe(true);
      for (const word of words) expect(possible).toContain(word);
      const after = await getNode(one.store.db, node.id);
      expect(after?.membership).toMatchObject({ state, message: "because" });
    }
  });

  it("should never undo: delete", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const node = new TestNode(`delete-${round}`);
      await node.register(one.registry);
      const request = await node.joining(other.registry);
      const [[word], done] = await Promise.all([
        wordsOf([other.registry.registerNode(request)]),
        operate(one.store, node.id, "delete"),
      ]);
      expect(done).toBe(true);
      const after = await getNode(one.store.db, node.id);
      // Either it returned, and then was deleted; or it was deleted, and then joined as a new node that waits.
      if (word === "returned") expect(after).toBeNull();
      else expect([word, after?.membership.state]).toEqual(["created", "PENDING"]);
      const types = (await eventsOf(one.store, node.id)).map(({ type }) => type);
      expect(types).toEqual(
        word === "returned"
          ? ["node.registered", "node.deleted"]
          : ["node.registered", "node.deleted", "node.registered"],
      );
    }
  });
});

describe("registerNode(), races with itself", () => {
  it("should create a node once, in one registry or two", async () => {
    for (let round = 0; round < 20; round += 1) {
      const node = new TestNode(`twice-${round}`);
      const requests = await Promise.all([1, 2, 3, 4].map(() => node.joining(one.registry)));
      const words = await wordsOf(
        requests.map(
          (request, index) =>
            [one, other][index % 2]?.registry.registerNode(request) ?? Promise.reject(),
        ),
      );
      expect(words.toSorted()).toEqual(["created", "returned", "returned", "returned"]);
      expect(await eventsOf(one.store, node.id)).toHaveLength(1);
    }
  });

  it("should give a new id to one of two keys", async () => {
    for (let round = 0; round < 20; round += 1) {
      const nodes = [new TestNode(`claimed-${round}`), new TestNode(`claimed-${round}`)];
      const words = await wordsOf([
        nodes[0]?.register(one.registry) ?? Promise.reject(),
        nodes[1]?.register(other.registry) ?? Promise.reject(),
      ]);
      expect(words.toSorted()).toEqual(["NODE_KEY_MISMATCH", "created"]);
    }
  });
});

describe("registerNode(), limits", () => {
  it("should refuse what no longer fits into the queue, and serve the rest", async () => {
    const narrow = await startRig(
      { store: one.store },
      { config: { "Registry.RegistrationQueue": 5 } },
    );
    try {
      const nodes = Array.from({ length: 60 }, (_, index) => new TestNode(`crowd-${index}`));
      const requests = await Promise.all(nodes.map((node) => node.joining(narrow.registry)));
      const words = await wordsOf(requests.map((it) => narrow.registry.registerNode(it)));
      const refused = words.filter((word) => word === "OVERLOADED").length;
      expect(refused).toBeGreaterThan(0);
      expect(words.filter((word) => word === "created")).toHaveLength(nodes.length - refused);
      const again = nodes[words.indexOf("OVERLOADED")];
      expect(await again?.register(narrow.registry)).toMatchObject({ created: true });
    } finally {
      await narrow.close();
    }
  });

  it("should tell those that are refused when to try again", async () => {
    const narrow = await startRig(
      { store: one.store },
      { config: { "Registry.RegistrationQueue": 1 } },
    );
    try {
      const nodes = Array.from({ length: 30 }, (_, index) => new TestNode(`hint-${index}`));
      const requests = await Promise.all(nodes.map((node) => node.joining(narrow.registry)));
      const calls = requests.map((it) => narrow.registry.registerNode(it));
      const settled = await Promise.allSettled(calls);
      const index = settled.findIndex(({ status }) => status === "rejected");
      expect(await refusalOf(calls[index] ?? Promise.resolve())).toMatchObject({
        code: Code.ResourceExhausted,
        reason: "OVERLOADED",
        retryAfterMs: 1_000,
      });
    } finally {
      await narrow.close();
    }
  });
});
