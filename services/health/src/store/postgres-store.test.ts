import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { currentRevision, EventFeed, openSessions } from "@rollcall/store";
import { addNode, createGate, createTestDatabase, type TestDatabase, testFingerprint, until } from "@rollcall/testkit";
import { createPostgresRecord } from "./postgres-store.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const HELLO = {
  nodeId: "n",
  keyFingerprint: testFingerprint("n"),
  instanceId: "i",
  bootId: "b",
  machineFingerprint: "f",
  address: "a:1",
};

async function isWaitingForLock(): Promise<boolean> {
  const { db, address } = database.store;
  const locks = await db
    .withTables<{
      pg_locks: { readonly pid: number; readonly granted: boolean };
      pg_stat_activity: { readonly pid: number; readonly datname: string };
    }>()
    .selectFrom("pg_locks as l")
    .innerJoin("pg_stat_activity as a", "a.pid", "l.pid")
    .select("l.pid")
    .where("l.granted", "=", false)
    .where("a.datname", "=", new URL(address.url).pathname.slice(1))
    .execute();
  return locks.length > 0;
}

describe("createPostgresRecord()", () => {
  it("should report an opening as newer than another replica's that it waited for", async () => {
    const { store } = database;
    await addNode(store, "n");
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const record = createPostgresRecord({ store: store.reserved, feed, instance: "one" });
    await record.openSessions([HELLO]);
    const read = await currentRevision(store.db);
    const [opened, committing] = [createGate(), createGate()];
    const other = store.change(async (tx) => {
      const change = await openSessions(tx, [{ ...HELLO, replicaId: "two" }]);
      opened.open();
      await committing.passed;
      return change;
    });
    await opened.passed;
    const own = record.openSessions([HELLO]);
    await until("the opening to wait for the other", isWaitingForLock);
    committing.open();
    const { revision: displaced } = await other;
    const [opening] = await own;
    if (opening?.outcome !== "OPENED") throw new Error("it was not opened");
    expect(opening).toMatchObject({ epoch: 3, previous: { replicaId: "two" }, revision: read });
    // The revision of the event about the loss of the first session lies between the two revisions of the opening.
    expect(displaced).toBeGreaterThan(opening.revision);
    expect(displaced).toBeLessThan(opening.openedRevision);
    expect(opening.openedRevision).toBe(await currentRevision(store.db));
  });

  it("should report nothing newer for an opening without a previous one by another replica", async () => {
    const { store } = database;
    const feed = new EventFeed({ store: store.reserved, log: silentLogger });
    const record = createPostgresRecord({ store: store.reserved, feed, instance: "one" });
    const [opening] = await record.openSessions([HELLO]);
    expect(opening).toMatchObject({ epoch: 4, previous: { replicaId: "one" } });
    expect(opening).toMatchObject({ openedRevision: opening?.revision });
  });
});
