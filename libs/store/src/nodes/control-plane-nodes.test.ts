import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { takeLease } from "../leases/leases.ts";
import { endOwnProcess } from "../leases/process-end.ts";
import { currentRevision, readEvents } from "../log/events.ts";
import { expireOrchestrators, joinAsOrchestrator } from "./control-plane-nodes.ts";
import { getNode } from "./nodes.ts";
import { getTombstone } from "./tombstones.ts";

let database: TestDatabase;
let store: Store;
const HOUR_MS = 3_600_000;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

function nodeOf(nodeId: string, instance: string) {
  return {
    nodeId,
    instance,
    info: { hostname: nodeId },
    infoDigest: "d",
    summary: { cores: 2, memoryBytes: 1, diskBytes: 1, gpus: 0 },
    labels: { role: "control" },
    address: "127.0.0.1:7700",
  };
}

async function eventsSince(after: bigint): Promise<readonly string[]> {
  const { events } = await readEvents(store.db, { after, limit: 100 });
  return events.map(({ subject, type, reason }) => `${subject} ${type} ${reason}`);
}

async function makeOld(nodeId: string): Promise<void> {
  await sql`
    update node_sessions set connection_since = connection_since - interval '2 hours'
    where node_id = ${nodeId}`.execute(store.db);
}

describe("joinAsOrchestrator()", () => {
  it("should not take an id that differs only in case from a node's", async () => {
    await addNode(store, "Machine-7700");
    expect(await joinAsOrchestrator(store, nodeOf("machine-7700", "i0"))).toBe(false);
    expect(await getNode(store.db, "machine-7700")).toBeNull();
    expect(await joinAsOrchestrator(store, nodeOf("machine-7700-2", "i0"))).toBe(true);
  });

  it("should register a process as an approved and connected node", async () => {
    const before = await currentRevision(store.db);
    expect(await joinAsOrchestrator(store, nodeOf("cp", "i1"))).toBe(true);
    expect(await getNode(store.db, "cp")).toMatchObject({
      type: "ORCHESTRATOR",
      membership: { state: "APPROVED", reason: "CONTROL_PLANE" },
      connection: { state: "CONNECTED" },
      summary: { cores: 2 },
      labels: [{ key: "role", value: "control", tier: "agent" }],
      session: { replicaId: "i1", address: "127.0.0.1:7700" },
    });
    expect(await eventsSince(before)).toEqual([
      "cp node.registered CONTROL_PLANE",
      "cp node.connection.changed STREAM_OPENED",
    ]);
  });

  it("should append no event when it joins again, and store the new start", async () => {
    const before = await currentRevision(store.db);
    expect(await joinAsOrchestrator(store, nodeOf("cp", "i2"))).toBe(true);
    expect((await getNode(store.db, "cp"))?.session.replicaId).toBe("i2");
    expect(await eventsSince(before)).toEqual([]);
    // The node now belongs to the new start, so the end of the earlier start does not disconnect it.
    await endOwnProcess(store, "i1");
    expect((await getNode(store.db, "cp"))?.connection.state).toBe("CONNECTED");
  });

  it("should refuse the id of a compute node", async () => {
    await addNode(store, "machine");
    const before = await currentRevision(store.db);
    expect(await joinAsOrchestrator(store, nodeOf("machine", "i3"))).toBe(false);
    expect((await getNode(store.db, "machine"))?.type).toBe("COMPUTE");
    expect(await currentRevision(store.db)).toBe(before);
  });

  it("should register a node once when several processes take one id at once", async () => {
    const before = await currentRevision(store.db);
    await Promise.all(["a", "b", "c"].map((instance) => joinAsOrchestrator(store, nodeOf("same", instance))));
    expect(await eventsSince(before)).toEqual([
      "same node.registered CONTROL_PLANE",
      "same node.connection.changed STREAM_OPENED",
    ]);
  });
});

describe("expireOrchestrators()", () => {
  it("should remove those that have long been gone, with a tombstone and an event", async () => {
    await joinAsOrchestrator(store, nodeOf("gone", "g"));
    await joinAsOrchestrator(store, nodeOf("fresh", "f"));
    await joinAsOrchestrator(store, nodeOf("back", "b"));
    for (const instance of ["g", "f", "b"]) await endOwnProcess(store, instance);
    await makeOld("gone");
    await makeOld("back");
    await takeLease(store.db, { name: "b", instance: "b", service: "admin", address: "" });
    const before = await currentRevision(store.db);
    expect(await expireOrchestrators(store, HOUR_MS)).toEqual(["gone"]);
    expect(await getNode(store.db, "gone")).toBeNull();
    expect(await getNode(store.db, "fresh")).not.toBeNull();
    expect(await getTombstone(store.db, "gone")).toMatchObject({
      actor: "system",
      reason: "LEASE_EXPIRED",
    });
    expect(await eventsSince(before)).toEqual(["gone node.deleted LEASE_EXPIRED"]);
    expect(await expireOrchestrators(store, HOUR_MS)).toEqual([]);
  });

  it("should remove each once when several processes sweep at once", async () => {
    await joinAsOrchestrator(store, nodeOf("swept", "s"));
    await endOwnProcess(store, "s");
    await makeOld("swept");
    const swept = await Promise.all([1, 2, 3].map(() => expireOrchestrators(store, HOUR_MS)));
    expect(swept.flat()).toEqual(["swept"]);
  });
});
