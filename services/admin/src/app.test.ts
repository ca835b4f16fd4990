import { describe, expect, it } from "@jest/globals";
import { createMetrics, silentLogger, systemClock } from "@rollcall/process";
import { isReady } from "@rollcall/rpc";
import type { Store } from "@rollcall/store";
import { createTestDatabase } from "@rollcall/testkit";
import { createApp } from "./app.ts";
import { DEFAULT_CONFIG } from "./testing/rig.ts";

function appOf(store: Store) {
  return createApp({
    store,
    clock: systemClock,
    log: silentLogger,
    metrics: createMetrics({ defaults: false }),
    instance: "admin-1",
    config: DEFAULT_CONFIG,
  });
}

describe("createApp()", () => {
  it("should be ready while the record can be reached, and only then", async () => {
    const database = await createTestDatabase();
    try {
      const store = await database.openStore();
      const app = appOf(store);
      const ready = await app.ready();
      expect(isReady(ready)).toBe(true);
      expect(ready.store?.message).toMatch(/^at revision \d+$/);
      await store.close();
      // Receivers of webhooks do not make admin unready.
      expect(await app.ready()).toEqual({
        store: { ok: false, message: "the record cannot be reached" },
        webhooks: { ok: true, message: "0 webhooks are delivered to from here" },
      });
      await app.close();
    } finally {
      await database.drop();
    }
  });
});
