import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { Membership } from "@rollcall/domain";
import { silentLogger } from "@rollcall/process";
import {
  advertise,
  getNode,
  insertNode,
  listTombstones,
  openSessions,
  readEvents,
  type Store,
  takeLease,
} from "@rollcall/store";
import { createTestDatabase, ManualClock, saveKey, type TestDatabase } from "@rollcall/testkit";
import type { RegistryConfig } from "../config.ts";
import { DEFAULT_CONFIG } from "../testing/seed.ts";
import { collectNodes } from "./collect-nodes.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const REPLICA = "health-1";

let database: TestDatabase;
let store: Store;
let clock: ManualClock;

beforeAll(async () => {
  database = await createTestDatabase();
  ({ store } = database);
});
afterAll(() => database.drop());

beforeEach(async () => {
  clock = new ManualClock();
  for (const table of ["nodes", "node_tombstones", "leases", "health_replicas"] as const) {
    await store.db.deleteFrom(table).execute();
  }
  const lease = { name: REPLICA, instance: REPLICA, service: "health", address: "" };
  await takeLease(store.db, lease);
  await advertise(store.db, {
    instance: REPLICA,
    agentEndpoint: ":7701",
    internalAddress: "",
    queryEndpoint: "",
  });
});

/** Add a node that has been disconnected for a time. */
async function addGone(
  id: string,
  goneForMs: number,
  how: {
    readonly ephemeral?: boolean;
    readonly goodbye?: boolean;
    readonly state?: Membership["state"];
    readonly connected?: boolean;
  } = {},
): Promise<void> {
  const { ephemeral = false, goodbye = false, state = "APPROVED", connected = false } = how;
  const membership = { state, sinceMs: 0, reason: "TEST", message: "", actor: "system" };
  await store.transaction(async (tx) => {
    await insertNode(tx, { id, type: "COMPUTE", membership });
    const key = { nodeId: id, publicKey: new Uint8Array(32), fingerprint: `SHA256:${id}` };
    await saveKey(tx, key);
    await tx.updateTable("nodes").set({ ephemeral }).where("id", "=", id).execute();
    const since = new Date(Date.now() - goneForMs);
    await tx
      .updateTable("node_sessions")
      .set({
        connection: connected ? "CONNECTED" : "DISCONNECTED",
        connection_since: since,
        connection_reason: goodbye ? "AGENT_SHUTDOWN" : "STREAM_BROKEN",
        health_since: since,
      })
      .where("node_id", "=", id)
      .execute();
  });
}

function collector(config: Partial<RegistryConfig> = {}) {
  const services = { store, clock, log: silentLogger, config: { ...DEFAULT_CONFIG, ...config } };
  const chore = collectNodes(services);
  const { signal } = new AbortController();
  const look = () => chore.run(signal);
  return {
    look,
    /** Run every twenty seconds, as upkeep does. */
    lookFor: async (ms: number) => {
      let removed = await look();
      for (let passed = 0; passed < ms; passed += 20_000) {
        await clock.advance(20_000);
        removed += await look();
      }
      return removed;
    },
  };
}

async function left(): Promise<readonly string[]> {
  const rows = await store.db.selectFrom("nodes").select("id").orderBy("id").execute();
  return rows.map(({ id }) => id);
}

describe("collectNodes()", () => {
  it("should keep all persistent nodes if no time is configured", async () => {
    await addGone("old", 400 * DAY_MS);
    expect(await collector().lookFor(20 * MINUTE_MS)).toBe(0);
    expect(await left()).toEqual(["old"]);
  });

  it("should remove only nodes long gone, with a tombstone and an event", async () => {
    await addGone("approved", 31 * DAY_MS);
    await addGone("pending", 31 * DAY_MS, { state: "PENDING" });
    await addGone("rejected", 31 * DAY_MS, { state: "REJECTED" });
    await addGone("connected", 31 * DAY_MS, { connected: true });
    await addGone("lately", 29 * DAY_MS);
    const collecting = collector({ "Orchestrator.NodeManager.CollectAfter": 30 * DAY_MS });
    expect(await collecting.lookFor(14 * MINUTE_MS)).toBe(0);
    expect(await collecting.lookFor(2 * MINUTE_MS)).toBe(2);
    expect(await left()).toEqual(["connected", "lately", "rejected"]);
    const tombstones = await listTombstones(store.db, { limit: 10, before: null });
    expect(tombstones.map((it) => [it.nodeId, it.actor, it.reason])).toEqual([
      ["pending", "system", "COLLECTED"],
      ["approved", "system", "COLLECTED"],
    ]);
    const { events } = await readEvents(store.db, { after: 0n, limit: 10, subject: "approved" });
    expect(events).toMatchObject([{ type: "node.deleted", actor: "system", reason: "COLLECTED", after: null }]);
  });

  it("should remove ephemeral nodes soon, and sooner after a goodbye", async () => {
    await addGone("broken", 10 * MINUTE_MS, { ephemeral: true });
    await addGone("goodbye", 10 * MINUTE_MS, { ephemeral: true, goodbye: true });
    await addGone("back", 10 * MINUTE_MS, { ephemeral: true, connected: true });
    const collecting = collector();
    await collecting.lookFor(MINUTE_MS);
    expect(await left()).toEqual(["back", "broken"]);
    await collecting.lookFor(4 * MINUTE_MS);
    expect(await left()).toEqual(["back"]);
    const [last] = await listTombstones(store.db, { limit: 1, before: null });
    expect(last?.reason).toBe("EPHEMERAL_LEFT");
  });

  it("should not mistake its own absence, or that of all health replicas, for that of nodes", async () => {
    await addGone("away", 10 * MINUTE_MS, { ephemeral: true });
    const collecting = collector();
    await collecting.lookFor(4 * MINUTE_MS);
    // Simulate that the store was unavailable, or that this process was stopped.
    await clock.advance(10 * MINUTE_MS);
    expect(await collecting.lookFor(4 * MINUTE_MS)).toBe(0);
    await store.db.deleteFrom("leases").execute();
    expect(await collecting.lookFor(10 * MINUTE_MS)).toBe(0);
    await takeLease(store.db, { name: REPLICA, instance: REPLICA, service: "health", address: "" });
    expect(await collecting.lookFor(4 * MINUTE_MS)).toBe(0);
    expect(await collecting.lookFor(2 * MINUTE_MS)).toBe(1);
  });

  it("should never remove a node that returns concurrently", async () => {
    for (let round = 0; round < 5; round += 1) {
      const nodeId = `racing-${round}`;
      await addGone(nodeId, 10 * MINUTE_MS, { ephemeral: true });
      const collecting = collector();
      await collecting.lookFor(4 * MINUTE_MS);
      await clock.advance(MINUTE_MS);
      const keys = await store.db.selectFrom("nodes").select("id").execute();
      expect(keys).toContainEqual({ id: nodeId });
      const origin = { instanceId: "i", bootId: "b", machineFingerprint: "m", address: "10.0.0.1:1" };
      const hello = { nodeId, replicaId: REPLICA, keyFingerprint: `SHA256:${nodeId}`, ...origin };
      const [opened] = await Promise.all([store.change((tx) => openSessions(tx, [hello])), collecting.look()]);
      const node = await getNode(store.db, nodeId);
      // Either the node was collected before it reconnected, or it reconnected first, but never both.
      expect(node === null).toBe(opened.result[0]?.outcome !== "OPENED");
    }
  });
});
