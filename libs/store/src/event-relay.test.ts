import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { openRelay, RELAY_LEASE, readRelay, rewindRelay, saveRelay } from "./event-relay.ts";
import { appendEvents } from "./events.ts";
import { releaseLease, takeLease } from "./leases.ts";

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
  const lease = (instance: string) => ({ name: RELAY_LEASE, instance, service: "s", address: "" });

  it("should be opened by the holder of the lease alone, and saved by the last one that opened it", async () => {
    const { db } = database.store;
    expect(await openRelay(db, lease("i1"))).toBeNull();
    await takeLease(db, lease("i1"));
    expect(await openRelay(db, lease("i2"))).toBeNull();
    const first = await openRelay(db, lease("i1"));
    expect(first).toEqual({ revision: 0n, generation: 1 });
    expect(await saveRelay(db, { revision: 7n, generation: 1 })).toBe(true);
    await releaseLease(db, RELAY_LEASE, "i1");
    await takeLease(db, lease("i2"));
    // Until another opens it, what the former holder still had on its way counts.
    expect(await saveRelay(db, { revision: 8n, generation: 1 })).toBe(true);
    expect(await openRelay(db, lease("i2"))).toEqual({ revision: 8n, generation: 2 });
    expect(await saveRelay(db, { revision: 9n, generation: 1 })).toBe(false);
    expect(await readRelay(db)).toMatchObject({
      revision: 8n,
      generation: 2,
      head: 20n,
      holder: "i2",
    });
  });

  it("should not be saved beyond the end of the log", async () => {
    const { db } = database.store;
    expect(await saveRelay(db, { revision: 20n, generation: 2 })).toBe(true);
    expect(await saveRelay(db, { revision: 21n, generation: 2 })).toBe(false);
  });

  it("should be set back, never forward, and so fence whoever relays", async () => {
    const { db } = database.store;
    expect(await rewindRelay(db, 21n)).toEqual({ before: 20n, after: 20n });
    expect(await saveRelay(db, { revision: 19n, generation: 2 })).toBe(true);
    expect(await rewindRelay(db, 4n)).toEqual({ before: 19n, after: 4n });
    expect(await saveRelay(db, { revision: 20n, generation: 2 })).toBe(false);
    expect(await readRelay(db)).toMatchObject({ revision: 4n, generation: 3 });
  });
});
