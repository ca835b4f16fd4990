import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { addNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { countCluster } from "./count-cluster.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("countCluster()", () => {
  it("should count while this process leads, and show nothing when another does", async () => {
    const { store } = database;
    await addNode(store, "n1");
    await addNode(store, "n2", { membership: "PENDING" });
    const metrics = createMetrics({ defaults: false });
    let leads = false;
    const task = countCluster({ store, clock: systemClock, metrics, isLeader: () => leads, everyMs: 10 });
    const running = startTasks([task], { clock: systemClock, log: silentLogger });
    expect(await renderMetrics(metrics)).not.toMatch(/^rollcall_/m);
    leads = true;
    await eventually(async () => {
      const text = await renderMetrics(metrics);
      expect(text).toMatch(/^rollcall_nodes\{membership="PENDING",.*\} 1$/m);
      expect(text).toMatch(/^rollcall_log_head_revision \d+$/m);
    });
    leads = false;
    expect(await renderMetrics(metrics)).not.toMatch(/^rollcall_/m);
    await running.close();
  });
});
