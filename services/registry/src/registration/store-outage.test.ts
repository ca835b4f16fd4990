import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { getNode, openStore, type Store } from "@rollcall/store";
import { refusalOf, startTestPostgres, type TestPostgres } from "@rollcall/testkit";
import { operate } from "../testing/operator.ts";
import { eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";
import { TestNode } from "../testing/test-node.ts";

/** The point in a registration's transaction where the database is stopped. */
type Moment = "before its first statement" | "after its last one, before the commit";

let postgres: TestPostgres;
let store: Store;
let rig: Rig;
let stopAt: Moment | null = null;

beforeAll(async () => {
  postgres = await startTestPostgres();
  store = await openStore({ url: postgres.url, log: silentLogger, applicationName: "registry" });
  const stopOnce = async (moment: Moment) => {
    if (stopAt !== moment) return;
    stopAt = null;
    await postgres.stop();
  };
  const { reserved } = store;
  const change: Store["change"] = (fn) =>
    reserved.change(async (tx) => {
      await stopOnce("before its first statement");
      const result = await fn(tx);
      await stopOnce("after its last one, before the commit");
      return result;
    });
  const fragile: Store = { ...store, reserved: { ...reserved, change } };
  rig = await startRig({ store: fragile });
});
afterAll(async () => {
  await rig.close();
  await store.close();
  await postgres.drop();
});

const UNAVAILABLE = {
  code: Code.Unavailable,
  reason: "STORE_UNAVAILABLE",
  retryAfterMs: expect.any(Number),
};

describe.each<Moment>(["before its first statement", "after its last one, before the commit"])(
  "registerNode(), the record stopped %s",
  (moment) => {
    const name = (id: string) => `${id}-${moment.slice(0, 5).trim()}`;

    it("should neither admit a rejected node again nor report that it joined", async () => {
      const outcast = new TestNode(name("outcast"));
      await outcast.register(rig.registry);
      await operate(store, outcast.id, "reject", "for good");
      const newcomer = new TestNode(name("newcomer"));
      const requests = [await outcast.joining(rig.registry), await newcomer.joining(rig.registry)] as const;
      stopAt = moment;
      const calls = requests.map((request) => rig.registry.registerNode(request));
      for (const refusal of await Promise.all(calls.map(refusalOf))) {
        expect(refusal).toMatchObject(UNAVAILABLE);
      }
      // While the store is unavailable, every caller gets the same error, including readers. A challenge
      // does not need the store.
      expect(await refusalOf(outcast.register(rig.registry))).toMatchObject(UNAVAILABLE);
      expect(await refusalOf(rig.registry.listNodes({}))).toMatchObject(UNAVAILABLE);
      expect(await refusalOf(rig.events.listEvents({}))).toMatchObject(UNAVAILABLE);

      await postgres.start();
      expect(await getNode(store.db, newcomer.id)).toBeNull();
      expect(await refusalOf(outcast.register(rig.registry))).toMatchObject({
        reason: "NODE_REJECTED",
        message: "node has been rejected: for good",
      });
      // The failed call has left nothing behind, not even its nonce, so the same request succeeds.
      expect(await rig.registry.registerNode(requests[1])).toMatchObject({ created: true });
      expect(await eventsOf(store, newcomer.id)).toHaveLength(1);
      const types = (await eventsOf(store, outcast.id)).map(({ type }) => type);
      expect(types).toEqual(["node.registered", "node.rejected"]);
    });
  },
);
