import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { appendEvents, createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { releaseLease, takeLease } from "../leases/leases.ts";
import { openRelay, RELAY_LEASE, readRelay, rewindRelay, saveRelay } from "./event-relay.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  const event = { type: "node.approved", actor: "a", reason: "R", message: "" } as const;
  const events = Array.from({ length: 20 }, (_, index) => ({
    ...event,
    subject: `n${index}`,
    before: null,
    after: null,
  }));
  await database.store.transaction((tx) => appendEvents(tx, events));
});

afterAll(async () => {
  await database.drop();
});

describe("the relay's cursor", () => {
  const record = () => {
    const { store } = database;
    return { store, db: store.db, logId: store.logId() };
  };
  const lease = (instance: string) => ({ name: RELAY_LEASE, instance, service: "s", address: "" });

  it("should be opened only by the lease holder, and saved only by the last one that opened it", async () => {
    const { store, db, logId } = record();
    expect(await openRelay(db, lease("i1"))).toBeNull();
    await takeLease(db, lease("i1"));
    expect(await openRelay(db, lease("i2"))).toBeNull();
    const first = await openRelay(db, lease("i1"));
    expect(first).toEqual({ revision: 0n, generation: 1 });
    expect(await saveRelay(store, { revision: 7n, generation: 1, logId })).toBe(true);
    await releaseLease(db, RELAY_LEASE, "i1");
    await takeLease(db, lease("i2"));
    // Save as the former holder, which is possible until another process opens the relay.
    expect(await saveRelay(store, { revision: 8n, generation: 1, logId })).toBe(true);
    expect(await openRelay(db, lease("i2"))).toEqual({ revision: 8n, generation: 2 });
    expect(await saveRelay(store, { revision: 9n, generation: 1, logId })).toBe(false);
    expect(await readRelay(db)).toMatchObject({
      revision: 8n,
      generation: 2,
      head: 20n,
      holder: "i2",
    });
  });

  it("should not be saved beyond the end of the log", async () => {
    const { store, logId } = record();
    expect(await saveRelay(store, { revision: 20n, generation: 2, logId })).toBe(true);
    expect(await saveRelay(store, { revision: 21n, generation: 2, logId })).toBe(false);
  });

  it("should be set back, never forward, which fences the current relay", async () => {
    const { store, db, logId } = record();
    expect(await rewindRelay(db, 21n)).toEqual({ before: 20n, after: 20n });
    expect(await saveRelay(store, { revision: 19n, generation: 2, logId })).toBe(true);
    expect(await rewindRelay(db, 4n)).toEqual({ before: 19n, after: 4n });
    expect(await saveRelay(store, { revision: 20n, generation: 2, logId })).toBe(false);
    expect(await readRelay(db)).toMatchObject({ revision: 4n, generation: 3 });
  });

  it("should not be saved into another history of the log, even with its generation and below its head", async () => {
    const { store, db, logId } = record();
    // Simulate what a client sees after a copy was restored or a standby was promoted.
    await db.updateTable("cluster").set({ log_origin: "another" }).execute();
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId })).toBe(false);
    const now = await store.refreshLogId();
    expect(now).not.toBe(logId);
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId })).toBe(false);
    expect(await readRelay(db)).toMatchObject({ revision: 4n, generation: 3 });
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId: now })).toBe(true);
  });
});
