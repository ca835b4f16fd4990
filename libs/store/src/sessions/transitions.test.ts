import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { connectionAfter, healthAfter } from "@rollcall/domain";
import { addNode, createTestDatabase, saveMark, type TestDatabase, testFingerprint } from "@rollcall/testkit";
import type { Store } from "../database/store.ts";
import { currentRevision, readEvents } from "../log/events.ts";
import { getNode } from "../nodes/nodes.ts";
import { openSessions } from "./sessions.ts";
import { writeTransitions } from "./transitions.ts";

let database: TestDatabase;
let store: Store;

const REPLICA = "replica-1";
const BY = { actor: `replica:${REPLICA}`, atMs: 0 };
const BEAT = healthAfter({ kind: "beat" }, BY);
const SILENT = healthAfter({ kind: "silence", to: "UNHEALTHY", silentMs: 60_000 }, BY);
const GOODBYE = healthAfter({ kind: "goodbye" }, BY);
const BROKEN = connectionAfter("broken", BY);

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

/** Add nodes and connect them. Afterwards, every epoch is 1. */
async function connect(...ids: string[]): Promise<void> {
  for (const id of ids) await addNode(store, id);
  const machine = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "a:1" };
  await store.change((tx) =>
    openSessions(
      tx,
      ids.map((nodeId) => ({
        nodeId,
        replicaId: REPLICA,
        ...machine,
        keyFingerprint: testFingerprint(nodeId),
      })),
    ),
  );
}

async function eventsSince(after: bigint): Promise<readonly string[]> {
  const { events } = await readEvents(store.db, { after, limit: 1000 });
  return events.map(({ subject, before, after: now }) => JSON.stringify([subject, before, now]));
}

describe("writeTransitions()", () => {
  it("should write changes, with one event for each state", async () => {
    await connect("t1", "t2");
    const before = await currentRevision(store.db);
    const held = await writeTransitions(store, REPLICA, [
      { nodeId: "t1", epoch: 1, health: BEAT },
      { nodeId: "t2", epoch: 1, health: GOODBYE, connection: BROKEN },
    ]);
    expect(held).toEqual(new Set(["t1", "t2"]));
    expect(await eventsSince(before)).toEqual([
      '["t1",{"health":"UNKNOWN"},{"health":"HEALTHY"}]',
      '["t2",{"connection":"CONNECTED"},{"connection":"DISCONNECTED"}]',
      '["t2",{"health":"UNKNOWN"},{"health":"UNHEALTHY"}]',
    ]);
    const t2 = await getNode(store.db, "t2");
    expect(t2?.connection).toMatchObject({ state: "DISCONNECTED", reason: "STREAM_BROKEN" });
    expect(t2?.health).toMatchObject({ state: "UNHEALTHY", reason: "AGENT_SHUTDOWN" });
    expect(t2?.session).toMatchObject({ epoch: 1, replicaId: REPLICA });
  });

  it("should change nothing for another epoch, another replica or a node that is gone", async () => {
    await connect("fenced");
    const node = await getNode(store.db, "fenced");
    const before = await currentRevision(store.db);
    const items = [
      { nodeId: "fenced", epoch: 0, health: BEAT },
      { nodeId: "nobody", epoch: 1, health: BEAT },
    ];
    expect(await writeTransitions(store, REPLICA, items)).toEqual(new Set());
    const right = [{ nodeId: "fenced", epoch: 1, health: BEAT }];
    expect(await writeTransitions(store, "replica-2", right)).toEqual(new Set());
    expect(await writeTransitions(store, REPLICA, [])).toEqual(new Set());
    expect(await getNode(store.db, "fenced")).toEqual(node);
    expect(await currentRevision(store.db)).toBe(before);
  });

  it("should change nothing visible, and append no event, when only the reason is new", async () => {
    await connect("again");
    await writeTransitions(store, REPLICA, [{ nodeId: "again", epoch: 1, health: SILENT }]);
    const silent = await getNode(store.db, "again");
    const before = await currentRevision(store.db);
    const items = [{ nodeId: "again", epoch: 1, health: GOODBYE }];
    expect(await writeTransitions(store, REPLICA, items)).toEqual(new Set(["again"]));
    const gone = await getNode(store.db, "again");
    expect(gone?.health).toEqual(silent?.health);
    expect(await currentRevision(store.db)).toBe(before);
  });

  it("should update the reason of an unchanged health when the connection changes too", async () => {
    await connect("left");
    await writeTransitions(store, REPLICA, [{ nodeId: "left", epoch: 1, health: SILENT }]);
    const leaving = { nodeId: "left", epoch: 1, health: GOODBYE, connection: BROKEN };
    await writeTransitions(store, REPLICA, [leaving]);
    const gone = await getNode(store.db, "left");
    expect(gone?.health).toMatchObject({ state: "UNHEALTHY", reason: "AGENT_SHUTDOWN" });
  });

  it("should not show the health detected under a mark until the mark is cleared", async () => {
    await connect("marked");
    const mark = { sinceMs: 0, message: "", actor: "token:t" };
    await store.transaction((tx) => saveMark(tx, "marked", mark));
    const before = await currentRevision(store.db);
    await writeTransitions(store, REPLICA, [{ nodeId: "marked", epoch: 1, health: BEAT, connection: BROKEN }]);
    expect(await eventsSince(before)).toEqual(['["marked",{"connection":"CONNECTED"},{"connection":"DISCONNECTED"}]']);
    const under = await getNode(store.db, "marked");
    expect([under?.health.state, under?.detectedHealth.state]).toEqual(["UNHEALTHY", "HEALTHY"]);
    await store.transaction((tx) => saveMark(tx, "marked", null));
    expect((await getNode(store.db, "marked"))?.health.state).toBe("HEALTHY");
  });

  it("should apply several changes of one node in order", async () => {
    await connect("busy");
    const before = await currentRevision(store.db);
    await writeTransitions(store, REPLICA, [
      { nodeId: "busy", epoch: 1, health: BEAT },
      { nodeId: "busy", epoch: 1, health: SILENT },
    ]);
    expect(await eventsSince(before)).toEqual([
      '["busy",{"health":"UNKNOWN"},{"health":"HEALTHY"}]',
      '["busy",{"health":"HEALTHY"},{"health":"UNHEALTHY"}]',
    ]);
  });

  it("should let exactly one of a transition and a newer session win, a hundred times over", async () => {
    const machine = { instanceId: "i", bootId: "b", machineFingerprint: "f", address: "a:1" };
    for (let round = 0; round < 100; round += 1) {
      const id = `race-${round}`;
      await connect(id);
      const before = await currentRevision(store.db);
      const [held] = await Promise.all([
        writeTransitions(store, REPLICA, [{ nodeId: id, epoch: 1, connection: BROKEN }]),
        store.change((tx) =>
          openSessions(tx, [{ nodeId: id, replicaId: "replica-2", ...machine, keyFingerprint: testFingerprint(id) }]),
        ),
      ]);
      const node = await getNode(store.db, id);
      expect(node?.session).toMatchObject({ epoch: 2, replicaId: "replica-2" });
      expect(node?.connection.state).toBe("CONNECTED");
      // If the loss was written before the move, the node was lost and then reconnected: two events. If the loss came
      // after the move, it was fenced: one event.
      expect((await eventsSince(before)).length).toBe(held.has(id) ? 2 : 1);
    }
  });

  it("should never append a health event twice when a mark races a transition", async () => {
    for (let round = 0; round < 50; round += 1) {
      const id = `mark-race-${round}`;
      await connect(id);
      const before = await currentRevision(store.db);
      const mark = { sinceMs: 0, message: "", actor: "token:t" };
      await Promise.all([
        writeTransitions(store, REPLICA, [{ nodeId: id, epoch: 1, health: SILENT }]),
        store.transaction((tx) => saveMark(tx, id, mark)),
      ]);
      const node = await getNode(store.db, id);
      expect(node?.health.reason).toBe("OPERATOR_MARKED");
      expect(node?.detectedHealth.state).toBe("UNHEALTHY");
      expect((await eventsSince(before)).length).toBeLessThanOrEqual(1);
    }
  });

  it("should write hundreds at once", async () => {
    const ids = Array.from({ length: 300 }, (_, number) => `many-${number}`);
    await connect(...ids);
    const before = await currentRevision(store.db);
    const items = ids.map((nodeId) => ({ nodeId, epoch: 1, health: BEAT }));
    expect((await writeTransitions(store, REPLICA, items)).size).toBe(300);
    expect(await eventsSince(before)).toHaveLength(300);
  });
});
