import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { saveHolds, saveMark } from "./nodes.ts";
import { clusterSummary } from "./summary.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

describe("clusterSummary()", () => {
  it("should count nothing in an empty cluster", async () => {
    expect(await clusterSummary(database.store.db)).toEqual({
      nodes: 0,
      types: { ORCHESTRATOR: 0, COMPUTE: 0 },
      memberships: { PENDING: 0, APPROVED: 0, REJECTED: 0 },
      connections: { CONNECTED: 0, DISCONNECTED: 0 },
      healths: { HEALTHY: 0, UNHEALTHY: 0, UNKNOWN: 0 },
      schedulings: { ELIGIBLE: 0, INELIGIBLE: 0 },
      ready: 0,
      cores: 0,
      memoryBytes: 0,
      diskBytes: 0,
      gpus: 0,
    });
  });

  it("should count nodes by state and add up what the approved compute nodes bring", async () => {
    const { store } = database;
    const size = { cores: 3, memoryBytes: 2 ** 50, diskBytes: 2 ** 51, gpus: 1 };
    await addNode(store, "control", { type: "ORCHESTRATOR", ...size });
    await addNode(store, "ready", size);
    await addNode(store, "cordoned", size);
    await addNode(store, "marked", size);
    await addNode(store, "pending", { membership: "PENDING", ...size });
    await store.db.updateTable("node_sessions").set({ health: "HEALTHY" }).execute();
    const by = { sinceMs: 0, message: "", actor: "system" };
    await store.transaction((tx) => saveHolds(tx, "cordoned", [{ kind: "OPERATOR", ...by }]));
    await store.transaction((tx) => saveMark(tx, "marked", by));
    expect(await clusterSummary(store.db)).toEqual({
      nodes: 5,
      types: { ORCHESTRATOR: 1, COMPUTE: 4 },
      memberships: { PENDING: 1, APPROVED: 3, REJECTED: 0 },
      connections: { CONNECTED: 0, DISCONNECTED: 4 },
      healths: { HEALTHY: 3, UNHEALTHY: 1, UNKNOWN: 0 },
      schedulings: { ELIGIBLE: 3, INELIGIBLE: 1 },
      ready: 1,
      cores: 9,
      memoryBytes: 3 * 2 ** 50,
      diskBytes: 3 * 2 ** 51,
      gpus: 3,
    });
  });
});
