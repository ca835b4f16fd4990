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
    await database.drop();
  });
  const ready = async () => {
    const answer = await fetch(`http://${fixture.probes}/readyz`);
    const { checks } = (await answer.json()) as { readonly checks: Readonly<Record<string, object>> };
    return { status: answer.status, notifications: checks.notifications };
  };
  const examine = () => {
    const { server, dataDirectory } = fixture;
    const addresses = { registry: server, health: server, admin: server };
    return runClient("doctor", { addresses, tokenFile: join(dataDirectory, "admin-token") });
  };
  const doctor = async () => {
    const { text } = await examine();
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
    const named = await until(
      "/readyz to name it",
      async () => {
        const { status, notifications } = await ready();
        return status === 200 && Object(notifications).degraded === true && notifications;
      },
      WITHIN_MS,
    );
    expect(named).toEqual({ ok: true, degraded: true, message: expect.stringContaining("set Database.DirectURL") });
    await until("doctor to name it", async () => (await doctor()).includes("problem"), WITHIN_MS);
    proxy.weather.losesNotifications = false;
    await until(
      "/readyz to be as before",
      async () => !("degraded" in Object((await ready()).notifications)),
      WITHIN_MS,
    );
    await until("doctor to find nothing", async () => (await doctor()).includes(" ok "), WITHIN_MS);
  });

  it("should be reported once by doctor, with one advice, when Postgres cannot be reached at all", async () => {
    await proxy.close();
    const { code, text } = await until("doctor to find the outage", async () => {
      const outcome = await examine();
      return outcome.text.includes("\npostgres ") && outcome;
    });
    expect(code).toBe(1);
    expect(text).toMatch(/^postgres +registry, admin +problem +the database cannot be reached/m);
    const advice = text.slice(text.indexOf("\nproblem: postgres "));
    expect(advice.match(/^ {2}do: .*/gm)).toEqual([
      expect.stringMatching(/^ {2}do: start Postgres, or correct Database\.URL/),
      "  do: solve the problem of postgres first",
    ]);
    expect(advice.match(/^unknown: \w+/gm)).toEqual(["unknown: upkeep", "unknown: deployment", "unknown: webhooks"]);
  });
});
