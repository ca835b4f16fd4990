import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger, systemClock } from "@rollcall/process";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { SlowPostgresProxy } from "@rollcall/testkit/slow-postgres-proxy";
import { until } from "@rollcall/testkit/time";
import { openStore, type Store } from "../database/store.ts";
import { createStoreCheck } from "./store-check.ts";

describe("createStoreCheck() and a slow database", () => {
  let database: TestDatabase;
  let proxy: SlowPostgresProxy;
  let store: Store;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await SlowPostgresProxy.start(database.url);
    store = await openStore({ url: proxy.url, log: silentLogger, applicationName: "slow" });
  });
  afterAll(async () => {
    await store.close();
    await proxy.close();
    await database.drop();
  });
  /** How far the check's clock is ahead: it skips hours while the test waits for an answer. */
  let skippedMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + skippedMs };

  it("should report it, fail only after ten seconds without an answer, and recover once it answers", async () => {
    const check = createStoreCheck(store.reserved, silentLogger, clock);
    expect(await check()).toEqual({ ok: true, message: "at revision 0" });
    proxy.weather.statementDelayMs = 4_000;
    expect(await check()).toEqual({
      ok: true,
      degraded: true,
      message: expect.stringMatching(/^the database is slow: it has not answered for \d+\.\d s$/),
    });
    skippedMs = 10_000;
    expect(await check()).toEqual({ ok: false, message: expect.stringContaining("it has not answered for 1") });
    await until("its answer", async () => {
      const { ok, message } = await check();
      return ok && message.includes("it answered in");
    });
    proxy.weather.statementDelayMs = 0;
    await until("a fast answer", async () => (await check()).message === "at revision 0");
  });
});
