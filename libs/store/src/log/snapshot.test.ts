import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NewEvent } from "@rollcall/domain";
import { appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { currentRevision } from "./events.ts";
import { changedNodeIds, openSnapshot } from "./snapshot.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

async function append(...subjects: readonly string[]): Promise<bigint> {
  const events = subjects.map((subject): NewEvent => {
    const fields = { actor: "system", reason: "TESTED", message: "", before: null, after: null };
    return { type: "node.registered", subject, ...fields };
  });
  return database.store.transaction((tx) => appendEvents(tx, events));
}

describe("openSnapshot()", () => {
  it("should show the store as it was, whatever is written in the meantime", async () => {
    const { store } = database;
    const revision = await append("a");
    const snapshot = await openSnapshot(store);
    expect(snapshot).toMatchObject({ revision, compactedRevision: 0n });
    await append("b");
    expect(await currentRevision(snapshot.db)).toBe(revision);
    await snapshot.close();
    await snapshot.close();
    expect(await currentRevision(store.db)).toBe(revision + 1n);
  });
});

describe("changedNodeIds()", () => {
  it("should return each changed node once, with its last revision", async () => {
    const after = await append("z");
    const last = await append("y", "x", "y");
    expect(await changedNodeIds(database.store.db, after)).toEqual([
      { id: "x", revision: last - 1n },
      { id: "y", revision: last },
    ]);
    expect(await changedNodeIds(database.store.db, last)).toEqual([]);
  });
});
