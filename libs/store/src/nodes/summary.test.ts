import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, saveHolds, saveMark, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { clusterSummary, countLabels } from "./summary.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

const NO_WORK = { millicores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0n, executions: 0n };

describe("clusterSummary()", () => {
  it("should count nothing in an empty cluster", async () => {
    expect(await clusterSummary(database.store.db)).toEqual({
      ...{ offered: NO_WORK, allocated: NO_WORK },
      orchestrators: { total: 0, connected: 0 },
      compute: { total: 0, connected: 0 },
      states: [],
      holds: [],
      mayTakeWork: 0,
      total: { cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 },
      available: { cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 },
    });
  });

  it("should count nodes by state and add up the capacity of approved compute nodes", async () => {
    const { store } = database;
    // The sum of two nodes exceeds the integers that a double represents exactly.
    const size = { cores: 3, memoryBytes: 2 ** 53 - 1, diskBytes: 2 ** 51, gpus: 1 };
    await addNode(store, "control", { type: "ORCHESTRATOR", ...size });
    await addNode(store, "lost", { type: "ORCHESTRATOR", ...size });
    await addNode(store, "ready", size);
    await addNode(store, "cordoned", size);
    await addNode(store, "marked", size);
    await addNode(store, "pending", { membership: "PENDING", ...size });
    await store.db.updateTable("node_sessions").set({ health: "HEALTHY" }).execute();
    await store.db
      .updateTable("node_sessions")
      .set({ connection: "CONNECTED" })
      .where("node_id", "in", ["control", "ready", "marked"])
      .execute();
    const by = { sinceMs: 0, message: "", actor: "system" };
    await store.transaction((tx) => saveHolds(tx, "cordoned", [{ kind: "OPERATOR", ...by }]));
    await store.transaction((tx) => saveMark(tx, "marked", by));
    const approved = { membership: "APPROVED", scheduling: "ELIGIBLE", count: 1 };
    expect(await clusterSummary(store.db)).toEqual({
      ...{ offered: NO_WORK, allocated: NO_WORK },
      orchestrators: { total: 2, connected: 1 },
      compute: { total: 4, connected: 2 },
      states: [
        { ...approved, health: "HEALTHY" },
        { ...approved, health: "HEALTHY", scheduling: "INELIGIBLE" },
        { ...approved, health: "UNHEALTHY" },
        { ...approved, membership: "PENDING", health: "HEALTHY" },
      ],
      holds: [{ kind: "OPERATOR", count: 1 }],
      mayTakeWork: 1,
      total: { cores: 9n, memoryBytes: 3n * (2n ** 53n - 1n), diskBytes: 3n * 2n ** 51n, gpus: 3 },
      available: { cores: 3n, memoryBytes: 2n ** 53n - 1n, diskBytes: 2n ** 51n, gpus: 1 },
    });
  });

  it("should count no node as able to take work while a resource that all use is unknown, and no unknown GPUs", async () => {
    const { db } = database.store;
    const report = (...facts: readonly string[]) =>
      db
        .updateTable("nodes")
        .set({ info: JSON.stringify({ unknownFacts: facts.map((fact) => ({ fact })) }), info_digest: "d" })
        .where("id", "=", "ready")
        .execute();
    for (const fact of ["cpu.usable_millis", "memory_bytes", "disk_bytes"]) {
      await report("vm", fact);
      expect(await clusterSummary(db)).toMatchObject({
        mayTakeWork: 0,
        available: { cores: 0n, memoryBytes: 0n, diskBytes: 0n, gpus: 0 },
      });
    }
    await report("gpus");
    expect(await clusterSummary(db)).toMatchObject({
      mayTakeWork: 1,
      total: { gpus: 3 },
      available: { cores: 3n, gpus: 0 },
    });
  });

  it("should add up what approved nodes offer to executions, and what is allocated", async () => {
    const work = JSON.stringify({ work: { executors: ["process"], millicores: 4_000, memoryBytes: "1024" } });
    const { db } = database.store;
    await db
      .updateTable("nodes")
      .set({ info: work, info_digest: "d" })
      .where("id", "in", ["ready", "marked"])
      .execute();
    const given = { millicores: 1_500n, memory_bytes: 512n, gpu_uuids: ["GPU-1"], executions: 2 };
    for (const id of ["ready", "gone"])
      await db
        .insertInto("node_allocations")
        .values({ node_id: id, ...given })
        .execute();
    const { offered, allocated } = await clusterSummary(db);
    expect(offered).toMatchObject({ millicores: 8_000n, memoryBytes: 2_048n, diskBytes: 0n });
    expect(allocated).toMatchObject({ millicores: 1_500n, memoryBytes: 512n, gpus: 1n, executions: 2n });
  });
});

describe("countLabels()", () => {
  it("should count effective labels, with keys in order and the most frequent values first", async () => {
    const { store } = database;
    const label = (id: string, key: string, value: string, effective = true) =>
      store.db.insertInto("node_labels").values({ node_id: id, tier: "agent", key, value, effective }).execute();
    await label("ready", "zone", "a");
    await label("cordoned", "zone", "b");
    await label("marked", "zone", "b");
    await label("pending", "gpu", "h100");
    await label("pending", "zone", "c", false);
    await label("control", "zone", "b");
    expect(await countLabels(store.db)).toEqual([
      { key: "gpu", value: "h100", count: 1 },
      { key: "zone", value: "b", count: 2 },
      { key: "zone", value: "a", count: 1 },
    ]);
  });

  it("should return the 200 most frequent keys with 50 values each", async () => {
    const { db } = database.store;
    await sql`delete from node_labels`.execute(db);
    await sql`
      insert into nodes (id, type, membership, membership_reason, membership_message, membership_actor)
      select 'many-' || n, 'COMPUTE', 'PENDING', '', '', '' from generate_series(1, 60) as n`.execute(db);
    await sql`
      insert into node_labels (node_id, tier, key, value, effective)
      select 'many-' || n, 'agent', 'serial', n::text, true from generate_series(1, 60) as n
      union all
      select 'many-1', 'agent', 'key' || n, '', true from generate_series(1, 300) as n`.execute(db);
    const counted = await countLabels(db);
    expect(new Set(counted.map(({ key }) => key)).size).toBe(200);
    expect(counted.filter(({ key }) => key === "serial")).toHaveLength(50);
  });
});
