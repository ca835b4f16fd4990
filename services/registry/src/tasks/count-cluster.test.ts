import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger, startTasks, systemClock } from "@rollcall/process";
import { saveInfo } from "@rollcall/store";
import { addNode, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { countCluster } from "./count-cluster.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe("countCluster()", () => {
  it("should count while this process leads, and show nothing otherwise", async () => {
    const { store } = database;
    await addNode(store, "n1");
    await addNode(store, "n2", { membership: "PENDING" });
    const report = async (id: string, ...reasons: readonly string[]) => {
      await addNode(store, id);
      const info = { conditions: reasons.map((reason) => ({ reason, message: "" })) };
      const summary = { cores: 1, memoryBytes: 1, diskBytes: 1, gpus: 0 };
      await store.transaction((tx) => saveInfo(tx, id, { info, digest: id, summary, agentLabels: {} }));
    };
    await report("n3", "DISK_FULL");
    await report("n4", "DISK_FULL", "KEEPER_DOWN", "FANS_STUCK");
    // The drain of n4 has ended, and its agent has not confirmed the end.
    const { holds } = await store.db
      .selectFrom("nodes")
      .select("holds")
      .where("id", "=", "n4")
      .executeTakeFirstOrThrow();
    const unconfirmed = { kind: "DRAIN", sinceMs: 1, message: "", actor: "x", unconfirmed: true };
    const changed = JSON.stringify([...(holds as readonly object[]), unconfirmed]);
    await store.db.updateTable("nodes").set({ holds: changed }).where("id", "=", "n4").execute();
    const metrics = createMetrics({ defaults: false });
    let leads = false;
    const task = countCluster({ store, clock: systemClock, metrics, isLeader: () => leads, everyMs: 10 });
    const running = startTasks([task], { clock: systemClock, log: silentLogger });
    expect(await renderMetrics(metrics)).not.toMatch(/^rollcall_/m);
    leads = true;
    await eventually(async () => {
      const text = await renderMetrics(metrics);
      expect(text).toMatch(/^rollcall_nodes\{membership="PENDING",.*\} 1$/m);
      expect(text).toMatch(/^rollcall_node_conditions\{reason="DISK_FULL"\} 2$/m);
      expect(text).toMatch(/^rollcall_node_conditions\{reason="OTHER"\} 1$/m);
      expect(text).toMatch(/^rollcall_log_head_revision \d+$/m);
    });
    leads = false;
    expect(await renderMetrics(metrics)).not.toMatch(/^rollcall_/m);
    await running.close();
  });
});
