import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { addNode } from "../testing/record.ts";
import { keepHolds } from "./keep-holds.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("keepHolds()", () => {
  it("should lift cordons and start drains when due, and count them", async () => {
    const { store } = database;
    for (const id of ["cordoned", "d1", "d2"]) await addNode(store, id, "APPROVED");
    const until = { kind: "OPERATOR", sinceMs: 0, message: "", actor: "x", untilMs: 1 };
    await store.db
      .updateTable("nodes")
      .set({ holds: JSON.stringify([until]) })
      .where("id", "=", "cordoned")
      .execute();
    for (const node_id of ["d1", "d2"]) {
      const drain = { node_id, deadline_ms: 60_000n, deadline: null, selection: "s", max_parallel: 2, actor: "x" };
      await store.db
        .insertInto("drains")
        .values({ ...drain, drained_at: null })
        .execute();
    }
    const metrics = createMetrics({ defaults: false });
    const [clock, log] = [systemClock, silentLogger];
    const tasks = startTasks([keepHolds({ store, clock, log, metrics, instance: "admin-1" })], { log, clock });
    const countOf = async (name: string) => (await metrics.getSingleMetric(name)?.get())?.values[0]?.value;
    await eventually(async () => {
      expect(await countOf("rollcall_cordons_lifted_total")).toBe(1);
      expect(await countOf("rollcall_drains_begun_total")).toBe(2);
    });
    await tasks.close();
  });
});
