import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { getNode, getTombstone, orchestratorLost } from "@rollcall/store";
import { appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { addOrchestrator, eventsOf } from "../testing/record.ts";
import { expireOrchestrators } from "./collect-nodes.ts";

const MINUTE_MS = 60_000;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function lose(nodeId: string, minutesAgo: number): Promise<void> {
  const { store } = database;
  await addOrchestrator(store, nodeId);
  await store.transaction(async (tx) => {
    const lost = {
      instance: `instance-of-${nodeId}`,
      signal: "lease-expired",
      actor: "system",
    } as const;
    await appendEvents(tx, await orchestratorLost(tx, lost));
  });
  await store.db
    .updateTable("node_sessions")
    .set({ connection_since: new Date(Date.now() - minutesAgo * MINUTE_MS) })
    .where("node_id", "=", nodeId)
    .execute();
}

describe("expireOrchestrators()", () => {
  it("should remove those that were lost for an hour, and no others", async () => {
    const { store } = database;
    await lose("gone", 61);
    await lose("missing", 59);
    await addOrchestrator(store, "here");
    const ending = new AbortController();
    const task = expireOrchestrators({ store, clock: systemClock, log: silentLogger });
    const run = task.run(ending.signal, () => ending.abort(new Error("one turn is enough")));
    await expect(run).rejects.toThrow("one turn is enough");
    expect(await getNode(store.db, "gone")).toBeNull();
    expect(await getTombstone(store.db, "gone")).toMatchObject({ type: "ORCHESTRATOR" });
    expect((await eventsOf(store, "gone")).at(-1)).toMatchObject({ type: "node.deleted" });
    expect(await getNode(store.db, "missing")).not.toBeNull();
    expect(await getNode(store.db, "here")).not.toBeNull();
  });
});
