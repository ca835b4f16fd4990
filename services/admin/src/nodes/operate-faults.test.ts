import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { getNode } from "@rollcall/store";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { addNode, eventsOf } from "../testing/record.ts";
import { startRig } from "../testing/rig.ts";

let database: TestDatabase;
let runs = 0;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("an operator's requests, one of whose transactions fails", () => {
  it("should have one effect, event and audit row each, and return the first response again", async () => {
    const { store } = database;
    const calls = await failOnceAtEachCall(async (ports) => {
      runs += 1;
      const node = `node-${runs}`;
      await addNode(store, node);
      const { change } = ports.wrap("store", { change: store.change });
      const rig = await startRig({ store: { ...store, change } });
      try {
        const { admin } = rig;
        const requests: readonly ((requestId: string) => Promise<{ readonly node?: Node | undefined }>)[] = [
          (requestId) => admin.approveNode({ node, reason: "known", requestId }),
          (requestId) => admin.setNodeLabels({ node, set: { zone: "a" }, requestId }),
        ];
        for (const [index, request] of requests.entries()) {
          const id = `${node}-${index}`;
          const first = await ports.attempt(() => request(id));
          const again = await ports.attempt(() => request(id));
          expect(again).toMatchObject({ node: { id: node, labels: first.node?.labels } });
        }
        const { membership } = (await getNode(store.db, node)) ?? {};
        expect(membership).toMatchObject({ state: "APPROVED", message: "known" });
        expect((await eventsOf(store, node)).map(({ type }) => type)).toEqual(["node.approved", "node.labels.changed"]);
        const audit = await store.db
          .selectFrom("audit_log")
          .select("outcome")
          .where("target", "=", node)
          .orderBy("sequence")
          .execute();
        expect(audit.filter(({ outcome }) => outcome === "OK")).toHaveLength(requests.length);
      } finally {
        await rig.close();
      }
    });
    expect(calls).toHaveLength(4);
  });
});
