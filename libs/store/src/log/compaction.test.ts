import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { sql } from "kysely";
import { compactEvents, compactedRevision } from "./compaction.ts";
import { readEvents } from "./events.ts";

const HOUR_MS = 60 * 60_000;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

const event: NewEvent = {
  type: "node.registered",
  subject: "n",
  actor: "system",
  reason: "TESTED",
  message: "",
  before: null,
  after: null,
};

/** Append one event for each number, aged by that many hours. Returns the first revision. */
async function append(...hours: readonly number[]): Promise<bigint> {
  const { store } = database;
  const last = await store.transaction((tx) =>
    appendEvents(
      tx,
      hours.map(() => event),
    ),
  );
  const first = last - BigInt(hours.length - 1);
  for (const [index, age] of hours.entries()) {
    const at = sql<Date>`now() - ${age} * interval '1 hour'`;
    const revision = first + BigInt(index);
    await store.db.updateTable("events").set({ at }).where("revision", "=", revision).execute();
  }
  return first;
}

async function revisions(): Promise<readonly bigint[]> {
  const { events } = await readEvents(database.store.db, { after: 0n, limit: 1_000 });
  return events.map(({ revision }) => revision);
}

describe("compactEvents()", () => {
  it("should delete old events in bounded batches, and store up to where", async () => {
    const { store } = database;
    const first = await append(9, 8, 7, 6, 5, 1, 0);
    expect(await compactedRevision(store.db)).toBe(0n);
    expect(await compactEvents(store, 4 * HOUR_MS, { batchSize: 2 })).toBe(5);
    expect(await revisions()).toEqual([first + 5n, first + 6n]);
    expect(await compactedRevision(store.db)).toBe(first + 4n);
    expect(await compactEvents(store, 4 * HOUR_MS)).toBe(0);
    expect(await compactedRevision(store.db)).toBe(first + 4n);
  });

  it("should stop at the first recent event, even if a clock set back made later ones look old", async () => {
    const { store } = database;
    const old = sql<Date>`now() - interval '100 hours'`;
    await store.db.updateTable("events").set({ at: old }).execute();
    const first = await append(9, 1, 9, 0);
    await compactEvents(store, 4 * HOUR_MS);
    expect(await revisions()).toEqual([first + 1n, first + 2n, first + 3n]);
  });

  it("should keep the newest event, which marks the head of the log", async () => {
    const { store } = database;
    const first = await append(9, 9, 9);
    await compactEvents(store, HOUR_MS / 60);
    await compactEvents(store, -HOUR_MS);
    expect(await revisions()).toEqual([first + 2n]);
    expect(await compactedRevision(store.db)).toBe(first + 1n);
  });

  it("should work the same when several processes do it at once", async () => {
    const { store } = database;
    const first = await append(9, 8, 7, 6, 5, 0);
    await Promise.all([1, 2, 3].map(() => compactEvents(store, 4 * HOUR_MS, { batchSize: 2 })));
    await compactEvents(store, 4 * HOUR_MS);
    expect(await revisions()).toEqual([first + 5n]);
    expect(await compactedRevision(store.db)).toBe(first + 4n);
  });
});
