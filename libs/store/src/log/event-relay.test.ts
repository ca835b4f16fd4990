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

  it("should be opened by the holder of the lease alone, and saved by the last one that opened it", async () => {
    const { store, db, logId } = record();
    expect(await openRelay(db, lease("i1"))).toBeNull();
    await takeLease(db, lease("i1"));
    expect(await openRelay(db, lease("i2"))).toBeNull();
    const first = await openRelay(db, lease("i1"));
    expect(first).toEqual({ revision: 0n, generation: 1 });
    expect(await saveRelay(store, { revision: 7n, generation: 1, logId })).toBe(true);
    await releaseLease(db, RELAY_LEASE, "i1");
    await takeLease(db, lease("i2"));
    // Until another opens it, what the former holder still had on its way counts.
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

  it("should be set back, never forward, which fences the present relay", async () => {
    const { store, db, logId } = record();
    expect(await rewindRelay(db, 21n)).toEqual({ before: 20n, after: 20n });
    expect(await saveRelay(store, { revision: 19n, generation: 2, logId })).toBe(true);
    expect(await rewindRelay(db, 4n)).toEqual({ before: 19n, after: 4n });
    expect(await saveRelay(store, { revision: 20n, generation: 2, logId })).toBe(false);
    expect(await readRelay(db)).toMatchObject({ revision: 4n, generation: 3 });
  });

  it("should not be saved into another history of the log, by its own generation and within its end", async () => {
    const { store, db, logId } = record();
    // What a restored copy, or a promoted standby, looks like to a client.
    await db.updateTable("cluster").set({ log_origin: "another" }).execute();
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId })).toBe(false);
    const now = await store.refreshLogId();
    expect(now).not.toBe(logId);
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId })).toBe(false);
    expect(await readRelay(db)).toMatchObject({ revision: 4n, generation: 3 });
    expect(await saveRelay(store, { revision: 9n, generation: 3, logId: now })).toBe(true);
  });
});
