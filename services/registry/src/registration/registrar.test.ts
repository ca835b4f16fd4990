import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import type { Store } from "@rollcall/store";
import { createTestDatabase, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A store whose transactions wait until it is opened. */
function gated(store: Store) {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const change: Store["change"] = async (fn) => {
    await opened;
    return store.reserved.change(fn);
  };
  return { store: { ...store, reserved: { ...store.reserved, change } }, open };
}

describe("createRegistrar()", () => {
  it("should refuse registrations that do not fit into the queue, with a retry delay, and serve the rest", async () => {
    const queue = 5;
    const { store, open } = gated(database.store);
    const rig = await startRig({ store }, { config: { "Registry.RegistrationQueue": queue } });
    try {
      const nodes = Array.from({ length: 40 }, (_, index) => new TestNode(`crowd-${index}`));
      const calls = nodes.map((node) => rig.registry.registerNode(node.joiningAny(store)));
      const settled = Promise.allSettled(calls);
      const refusal = Promise.any(calls.map((call) => refusalOf(call)));
      expect(await refusal).toMatchObject({
        code: Code.ResourceExhausted,
        reason: "OVERLOADED",
        retryAfterMs: 1_000,
      });
      open();
      const reasons = (await settled).flatMap((outcome) =>
        outcome.status === "rejected" ? [reasonOf(outcome.reason)] : [],
      );
      expect(new Set(reasons)).toEqual(new Set(["OVERLOADED"]));
      // One batch is in progress, and the queue behind it is full.
      const served = nodes.length - reasons.length;
      expect(served).toBeGreaterThanOrEqual(queue);
      const record = await rig.registry.listNodes({});
      expect(record.nodes).toHaveLength(served);
      for (const node of nodes.slice(0, 3)) await node.register(rig.registry);
    } finally {
      await rig.close();
    }
  });
});
