import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { appendEvents, createGate, createTestDatabase, eventually, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { currentRevision, readEvents } from "./events.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

function eventOf(subject: string, type: NewEvent["type"] = "node.registered"): NewEvent {
  return {
    type,
    subject,
    actor: "system",
    reason: "TESTED",
    message: 'it\'s a "test"',
    before: null,
    after: { membership: "PENDING" },
  };
}

async function append(...events: readonly NewEvent[]): Promise<bigint> {
  return (await database.store.change(async () => ({ result: null, events }))).revision;
}

describe("the events of a change", () => {
  it("should give events of one call consecutive revisions in order", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    const last = await append(eventOf("a"), eventOf("b"), eventOf("c"));
    const { events, through } = await readEvents(store.db, { after, limit: 10 });
    expect(events.map(({ subject }) => subject)).toEqual(["a", "b", "c"]);
    expect(events.map(({ revision }) => revision)).toEqual([last - 2n, last - 1n, last]);
    expect(through).toBe(last);
  });

  it("should keep every field of an event", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    await append(eventOf("kept"));
    const { events } = await readEvents(store.db, { after, limit: 1 });
    expect(events[0]).toEqual({
      ...eventOf("kept"),
      displaces: null,
      revision: expect.any(BigInt),
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      atMs: expect.any(Number),
    });
  });

  it("should leave nothing of a rolled-back transaction", async () => {
    const { store } = database;
    const before = await currentRevision(store.db);
    await expect(
      store.transaction(async (tx) => {
        await appendEvents(tx, [eventOf("gone")]);
        throw new Error("changed my mind");
      }),
    ).rejects.toThrow("changed my mind");
    expect(await currentRevision(store.db)).toBe(before);
  });

  it("should take no lock when there is nothing to append", async () => {
    const { store } = database;
    await store.transaction(async (tx) => {
      await appendEvents(tx, [eventOf("holds the lock")]);
      expect(await append()).toBe(0n);
    });
  });

  it("should make a later revision wait until an earlier one has committed", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    const [appended, mayCommit] = [createGate(), createGate()];
    const first = store.transaction(async (tx) => {
      const revision = await appendEvents(tx, [eventOf("first")]);
      appended.open();
      await mayCommit.passed;
      return revision;
    });
    await appended.passed;
    const second = store.transaction((tx) => appendEvents(tx, [eventOf("second")]));
    await eventually(async () => {
      const { rows } = await sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'
      `.execute(store.db);
      expect(rows).toHaveLength(1);
    });
    expect((await readEvents(store.db, { after, limit: 9 })).events).toEqual([]);
    mayCommit.open();
    expect(await second).toBeGreaterThan(await first);
    const { events } = await readEvents(store.db, { after, limit: 9 });
    expect(events.map(({ subject }) => subject)).toEqual(["first", "second"]);
  });
});

describe("readEvents()", () => {
  it("should return only the wanted types, and how far it has read", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    await store.transaction((tx) =>
      appendEvents(tx, [
        eventOf("x", "node.approved"),
        eventOf("x", "node.rejected"),
        eventOf("x", "node.approved"),
        eventOf("x", "node.deleted"),
      ]),
    );
    const head = await currentRevision(store.db);
    const wanted = { after, types: ["node.approved"] as const };
    const all = await readEvents(store.db, { ...wanted, limit: 3 });
    expect(all.events).toHaveLength(2);
    expect(all.through).toBe(head);
    const some = await readEvents(store.db, { ...wanted, limit: 2 });
    expect(some.events).toHaveLength(2);
    expect(some.through).toBe(some.events[1]?.revision);
  });

  it("should return only events about one subject", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    await store.transaction((tx) => appendEvents(tx, [eventOf("me"), eventOf("you")]));
    const { events } = await readEvents(store.db, { after, limit: 9, subject: "me" });
    expect(events.map(({ subject }) => subject)).toEqual(["me"]);
  });

  it("should return events at or after a time, and before another", async () => {
    const { store } = database;
    const after = await currentRevision(store.db);
    for (const subject of ["first", "second"]) {
      await store.transaction((tx) => appendEvents(tx, [eventOf(subject)]));
    }
    const times = { first: new Date(1_000), second: new Date(2_000) };
    for (const [subject, at] of Object.entries(times)) {
      await store.db.updateTable("events").set({ at }).where("subject", "=", subject).execute();
    }
    const between = async (fromMs: number, untilMs: number) => {
      const { events } = await readEvents(store.db, { after, limit: 9, fromMs, untilMs });
      return events.map(({ subject }) => subject);
    };
    expect(await between(1_000, 2_001)).toEqual(["first", "second"]);
    expect(await between(1_000, 2_000)).toEqual(["first"]);
    expect(await between(1_001, 2_001)).toEqual(["second"]);
    expect(await between(1_001, 2_000)).toEqual([]);
  });
});
