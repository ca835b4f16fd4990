import { describe, expect, it } from "@jest/globals";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { isReady } from "@rollcall/rpc";
import { EventFeed, type Store } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { createApp } from "./app.ts";
import { DEFAULT_CONFIG } from "./testing/rig.ts";

function appOf(store: Store) {
  return createApp({
    store,
    feed: new EventFeed({ store: store.reserved, log: silentLogger }),
    clock: systemClock,
    log: silentLogger,
    metrics: createMetrics({ defaults: false }),
    instance: "admin-1",
    config: DEFAULT_CONFIG,
  });
}

describe("createApp()", () => {
  it("should be ready only while the database can be reached", async () => {
    const database = await createTestDatabase();
    try {
      const store = await database.openStore();
      const app = appOf(store);
      const ready = await app.ready();
      expect(isReady(ready)).toBe(true);
      expect(ready.store?.message).toMatch(/^at revision \d+$/);
      await store.close();
      // Unreachable webhook receivers do not make admin unready.
      expect(await app.ready()).toEqual({
        store: { ok: false, message: "the database cannot be reached" },
        webhooks: { ok: true, message: "0 webhooks are delivered by this process" },
      });
      await app.close();
    } finally {
      await database.drop();
    }
  });
});
