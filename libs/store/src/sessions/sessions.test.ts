import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  addNode,
  appendEvents,
  createGate,
  createTestDatabase,
  eventually,
  saveMark,
  saveMembership,
  type TestDatabase,
  testFingerprint,
} from "@rollcall/testkit";
import { sql } from "kysely";
import type { Store } from "../database/store.ts";
import { currentRevision, readEvents } from "../log/events.ts";
import { getNode, lockNode } from "../nodes/nodes.ts";
import type { SessionHello } from "./open-round.ts";
import { heldBy, openSessions, type SessionOpening } from "./sessions.ts";

let database: TestDatabase;
let store: Store;

beforeAll(async () => {
  database = await createTestDatabase();
  store = database.store;
});

afterAll(async () => {
  await database.drop();
});

function helloOf(nodeId: string, replicaId = "replica-1"): SessionHello {
  const machine = { instanceId: "i", bootId: `boot of ${nodeId}`, machineFingerprint: `print of ${nodeId}` };
  const keyFingerprint = testFingerprint(nodeId);
  return { nodeId, replicaId, ...machine, keyFingerprint, address: "10.0.0.1:4711" };
}

async function open(...hellos: SessionHello[]): Promise<readonly SessionOpening[]> {
  return (await store.change((tx) => openSessions(tx, hellos))).result;
}

async function eventsSince(after: bigint) {
  return (await readEvents(store.db, { after, limit: 1000 })).events;
}

describe("openSessions()", () => {
  it("should give a node its first epoch, mark it connected and append one event", async () => {
    const node = await addNode(store, "first");
    const before = await currentRevision(store.db);
    const [opening] = await open(helloOf("first"));
    expect(opening).toEqual({
      outcome: "OPENED",
      nodeId: "first",
      epoch: 1,
      membership: node.membership,
      marked: false,
      previous: { replicaId: null, bootId: null, machineFingerprint: null },
      ...{ isTakenOver: false, isDuplicated: false },
      detectedHealth: node.detectedHealth,
      infoDigest: node.infoDigest,
      revision: before,
    });
    const after = await getNode(store.db, "first");
    expect(after?.connection).toMatchObject({
      state: "CONNECTED",
      reason: "STREAM_OPENED",
      actor: "replica:replica-1",
    });
    expect(after?.session).toEqual({ epoch: 1, replicaId: "replica-1", address: "10.0.0.1:4711" });
    expect(await eventsSince(before)).toEqual([
      expect.objectContaining({
        type: "node.connection.changed",
        subject: "first",
        actor: "replica:replica-1",
        before: { connection: "DISCONNECTED" },
        after: { connection: "CONNECTED" },
      }),
    ]);
  });

  it("should fence the older session of a connected node, and notify its replica by an event that is no change of connection", async () => {
    await addNode(store, "moved");
    await open(helloOf("moved", "replica-1"));
    const connected = await getNode(store.db, "moved");
    const before = await currentRevision(store.db);
    const [opening] = await open(helloOf("moved", "replica-2"));
    expect(opening).toMatchObject({
      outcome: "OPENED",
      epoch: 2,
      previous: {
        replicaId: "replica-1",
        bootId: "boot of moved",
        machineFingerprint: "print of moved",
      },
    });
    expect(await eventsSince(before)).toMatchObject([
      {
        ...{ type: "node.session.moved", subject: "moved", actor: "replica:replica-2" },
        before: { replica: "replica-1" },
        after: { replica: "replica-2" },
      },
    ]);
    const after = await getNode(store.db, "moved");
    expect(after?.session.replicaId).toBe("replica-2");
    expect(after?.connection).toEqual(connected?.connection);
  });

  it("should append no event when the node's owner opens its next session", async () => {
    await addNode(store, "again");
    await open(helloOf("again"));
    const connected = await getNode(store.db, "again");
    const before = await currentRevision(store.db);
    await open(helloOf("again"));
    expect(await eventsSince(before)).toEqual([]);
    const after = await getNode(store.db, "again");
    expect(after?.session.epoch).toBe(2);
    expect(after?.connection).toEqual(connected?.connection);
  });

  it("should answer the hellos of a batch in order", async () => {
    await addNode(store, "good");
    await addNode(store, "bad", { membership: "REJECTED" });
    await addNode(store, "waiting", { membership: "PENDING" });
    await addNode(store, "control", { type: "ORCHESTRATOR" });
    const before = await currentRevision(store.db);
    const openings = await open(...["good", "nobody", "bad", "good", "waiting", "control"].map((id) => helloOf(id)));
    expect(
      openings.map((opening) => [opening.nodeId, opening.outcome, opening.outcome === "OPENED" ? opening.epoch : null]),
    ).toEqual([
      ["good", "OPENED", 1],
      ["nobody", "UNKNOWN_NODE", null],
      ["bad", "REJECTED", null],
      ["good", "OPENED", 2],
      ["waiting", "OPENED", 1],
      ["control", "UNKNOWN_NODE", null],
    ]);
    expect((await eventsSince(before)).map(({ subject }) => subject)).toEqual(["good", "waiting"]);
    const rejected = await getNode(store.db, "bad");
    expect(rejected).toMatchObject({
      connection: { state: "DISCONNECTED" },
      session: { epoch: 0, replicaId: null },
    });
  });

  it("should return nothing for no hellos", async () => {
    expect(await open()).toEqual([]);
  });

  it("should return a mark and the detected health", async () => {
    await addNode(store, "marked");
    const mark = { sinceMs: 0, message: "bad disk", actor: "token:t" };
    await store.transaction((tx) => saveMark(tx, "marked", mark));
    const [opening] = await open(helloOf("marked"));
    expect(opening).toMatchObject({ marked: true, detectedHealth: { state: "UNKNOWN" } });
  });

  it("should give each of many concurrent hellos its own epoch, in batches of any order", async () => {
    const ids = Array.from({ length: 20 }, (_, number) => `storm-${number}`);
    for (const id of ids) await addNode(store, id);
    const before = await currentRevision(store.db);
    const batches = await Promise.all(
      Array.from({ length: 10 }, (_, turn) => {
        const order = turn % 2 === 0 ? ids : ids.toReversed();
        return open(...order.map((id) => helloOf(id, `replica-${turn}`)));
      }),
    );
    for (const id of ids) {
      const epochs = batches
        .flat()
        .flatMap((opening) => (opening.outcome === "OPENED" && opening.nodeId === id ? [opening.epoch] : []));
      expect(epochs.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
    // Expect one event for each change: each node connects once and moves nine times.
    const events = await eventsSince(before);
    const connected = events.filter(({ type }) => type === "node.connection.changed");
    expect(connected.map(({ subject }) => subject).toSorted()).toEqual(ids.toSorted());
    const moves = events.filter(({ type }) => type === "node.session.moved");
    expect(moves).toHaveLength(ids.length * 9);
  });

  it("should read membership as of the returned revision, whatever commits while it waits", async () => {
    await addNode(store, "raced", { membership: "PENDING" });
    const before = await currentRevision(store.db);
    const [locked, mayGo] = [createGate(), createGate()];
    const blocker = store.transaction(async (tx) => {
      await sql`select from node_sessions where node_id = 'raced' for update`.execute(tx);
      locked.open();
      await mayGo.passed;
    });
    await locked.passed;
    const opening = open(helloOf("raced"));
    await eventually(async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      `.execute(store.db);
      expect(rows).toHaveLength(1);
    });
    const rejected = await store.transaction(async (tx) => {
      const node = await lockNode(tx, "raced");
      const by = { sinceMs: 0, reason: "OPERATOR_REJECTED", message: "no", actor: "token:t" };
      await saveMembership(tx, "raced", { state: "REJECTED", ...by });
      const fields = { actor: "token:t", reason: by.reason, message: "no", before: null };
      expect(node?.membership.state).toBe("PENDING");
      return appendEvents(tx, [{ type: "node.rejected", subject: "raced", ...fields, after: null }]);
    });
    mayGo.open();
    await blocker;
    const [opened] = await opening;
    expect(opened).toMatchObject({
      outcome: "OPENED",
      membership: { state: "PENDING" },
      revision: before,
    });
    // The rejection has a higher revision than the snapshot, so a feed that starts at the snapshot delivers it.
    expect(rejected).toBeGreaterThan(before);
  });
});

describe("heldBy()", () => {
  it("should return the compute nodes of one replica, in order of id", async () => {
    for (const id of ["h3", "h1", "h2"]) await addNode(store, id);
    await open(helloOf("h3", "holder"), helloOf("h1", "holder"), helloOf("h2", "another"));
    const held = await heldBy(store.db, "holder", null);
    expect(held).toEqual([
      expect.objectContaining({
        nodeId: "h1",
        epoch: 1,
        connection: expect.objectContaining({ state: "CONNECTED" }),
        detectedHealth: expect.objectContaining({ state: "UNKNOWN" }),
        marked: false,
        membership: expect.objectContaining({ state: "APPROVED" }),
      }),
      expect.objectContaining({ nodeId: "h3" }),
    ]);
    expect(await heldBy(store.db, "holder", ["h3", "h2", "unknown"])).toEqual([held[1]]);
    expect(await heldBy(store.db, "another-replica", null)).toEqual([]);
  });
});
