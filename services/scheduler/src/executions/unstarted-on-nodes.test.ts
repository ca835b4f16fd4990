import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type StoredExecution, saveInfo } from "@rollcall/store";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { unstartedOnNodes } from "./unstarted-on-nodes.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { store } = database;
  const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
  const conditions = [{ reason: "DISK_FULL", message: "no space is left in /state (ENOSPC)" }];
  for (const [id, info] of Object.entries({ full: { conditions }, well: {} })) {
    await addNode(store, id);
    await store.transaction((tx) => saveInfo(tx, id, { info, digest: id, summary, agentLabels: {} }));
  }
});
afterAll(() => database.drop());

const on = (nodeId: string, observed: string | null, part = {}) =>
  ({
    execution: { nodeId, state: "LIVE", desired: "RUN", ...part },
    observation: observed === null ? null : { observed },
  }) as unknown as StoredExecution;

describe("unstartedOnNodes()", () => {
  it("should name the nodes with conditions on which executions have not started", async () => {
    const { db } = database.store;
    expect(await unstartedOnNodes(db, [on("full", null), on("full", "STARTING"), on("well", null)])).toEqual([
      "2 executions have not started on full, which reports DISK_FULL: no space is left in /state (ENOSPC)",
    ]);
    const [one] = await unstartedOnNodes(db, [on("full", null)]);
    expect(one).toMatch(/^an execution has not started on full/);
  });

  it("should say nothing of what runs, is told to stop or has ended", async () => {
    const found = [on("full", "RUNNING"), on("full", null, { desired: "STOP" }), on("full", null, { state: "FAILED" })];
    expect(await unstartedOnNodes(database.store.db, found)).toEqual([]);
  });
});
