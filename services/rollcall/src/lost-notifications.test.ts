import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { SlowPostgresProxy } from "@rollcall/testkit/slow-postgres-proxy";
import { until } from "@rollcall/testkit/time";
import { runClient } from "./testing/run-client.ts";
import { createUpFixture, type UpFixture, WITHOUT_WORK } from "./testing/up-fixture.ts";

/** Time limit for the report. Notifications are checked every 10 s, and processes report every 15 s. */
const WITHIN_MS = 90_000;

describe("a process whose notifications stop arriving", () => {
  let database: TestDatabase;
  let proxy: SlowPostgresProxy;
  let fixture: UpFixture;
  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await SlowPostgresProxy.start(database.url);
    fixture = await createUpFixture();
    await fixture.up("--database-url", proxy.url, "--no-agent", ...WITHOUT_WORK);
  });
  afterAll(async () => {
    await fixture.dispose();
    await proxy.close();
    await database.drop();
  });
  const ready = async () => {
    const answer = await fetch(`http://${fixture.probes}/readyz`);
    const { checks } = (await answer.json()) as { readonly checks: Readonly<Record<string, object>> };
    return { status: answer.status, notifications: checks.notifications };
  };
  const doctor = async () => {
    const { server, dataDirectory } = fixture;
    const addresses = { registry: server, health: server, admin: server };
    const { text } = await runClient("doctor", { addresses, tokenFile: join(dataDirectory, "admin-token") });
    return text.split("\n").find((line) => line.startsWith("notifications")) ?? "";
  };

  it("should report notifications that arrive", async () => {
    await until("the first check", async () => {
      const { status, notifications } = await ready();
      expect(status).toBe(200);
      return Object(notifications).message === "arrive";
    });
  });

  it("should stay ready, and name the setting in /readyz and doctor until they arrive again", async () => {
    proxy.weather.losesNotifications = true;
    await until("/readyz to name it", async () => Object((await ready()).notifications).degraded === true, WITHIN_MS);
    expect(await ready()).toEqual({
      status: 200,
      notifications: { ok: true, degraded: true, message: expect.stringContaining("set Database.DirectURL") },
    });
    await until("doctor to name it", async () => (await doctor()).includes("problem"), WITHIN_MS);
    proxy.weather.losesNotifications = false;
    await until(
      "/readyz to be as before",
      async () => !("degraded" in Object((await ready()).notifications)),
      WITHIN_MS,
    );
    await until("doctor to find nothing", async () => (await doctor()).includes(" ok "), WITHIN_MS);
  });
});
