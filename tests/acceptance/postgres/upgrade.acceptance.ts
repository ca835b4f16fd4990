import { copyFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { buildEarlier } from "./earlier-release.ts";
import { createRawCluster, type RawServer } from "./raw-postgres.ts";
import { runJob, walkIn } from "./walk.ts";

jest.setTimeout(600_000);

/**
 * The commit that stands for an earlier release, because there is no release yet. It is the last commit with another
 * schema that the current version can migrate.
 */
const EARLIER = "a2cd30cb26a5a47b4d239aaa45842bc8b30f0ab4";
const EARLIER_SERVICES = ["registry", "health", "admin"] as const;

describe("an upgrade under load", () => {
  const undo: (() => Promise<void>)[] = [];
  let server: RawServer;
  let before: ServeFixture;
  let now: ServeFixture;

  beforeAll(async () => {
    const earlier = await buildEarlier(EARLIER);
    undo.push(earlier.remove);
    const cluster = await createRawCluster();
    undo.push(cluster.drop);
    server = await cluster.init("data");
    await server.start();
    before = await createServeFixture(server.url(), undefined, earlier.main);
    now = await createServeFixture(server.url());
    undo.push(before.dispose, now.dispose);
  });

  afterAll(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  it("should run both versions of every service side by side, and fail no call and declare no node unhealthy", async () => {
    const running: RollcallProcess[] = [];
    for (const service of EARLIER_SERVICES) {
      running.push(await before.serve(service, ...(service === "registry" ? ["--manual-approval"] : [])));
    }
    before.agent("early");
    await before.client.becomes("early", "PENDING CONNECTED HEALTHY");
    await before.client.admin.approveNode({ node: "early" });
    await before.client.grantTime("early");
    await before.client.becomes("early", "APPROVED CONNECTED HEALTHY");
    const earlierMigrations = await migrations();

    let { client } = before;
    const failures: unknown[] = [];
    let turns = 0;
    let isLoaded = true;
    const decide = async () => {
      for (; isLoaded; turns += 1) {
        await client.admin.cordonNode({ node: "early" }).catch((error: unknown) => failures.push(error));
        await client.admin.uncordonNode({ node: "early" }).catch((error: unknown) => failures.push(error));
      }
    };
    const deciding = decide();
    undo.push(async () => {
      isLoaded = false;
      await deciding;
    });
    const someMore = async () => {
      const since = turns;
      await until("some decisions", () => turns >= since + 5);
    };
    await someMore();

    // Start the new services. They migrate the schema, and the earlier services continue with it.
    await copyFile(before.tokenFile, now.tokenFile);
    for (const service of ["registry", "health", "admin", "scheduler"] as const) {
      await now.serve(service, ...(service === "registry" ? ["--manual-approval"] : []));
    }
    expect((await migrations()).length).toBeGreaterThan(earlierMigrations.length);
    await someMore();
    await walkIn(now, "walker");
    // With the new schema, the earlier registry and health service still accept an agent.
    before.agent("between");
    await before.client.becomes("between", "PENDING CONNECTED HEALTHY");
    await now.client.admin.approveNode({ node: "between" });
    await before.client.becomes("between", "APPROVED CONNECTED HEALTHY");

    client = now.client;
    await someMore();
    for (const process of running) expect(await process.killed("SIGTERM")).toBe(0);
    await someMore();
    isLoaded = false;
    await deciding;
    expect(failures).toEqual([]);
    // Run a job, to check that the agent has moved to a current replica. Earlier replicas dispatch no executions.
    await runJob(now, "walker");
    await now.client.becomes("early", "APPROVED CONNECTED HEALTHY");
    expect(await now.client.healthHistory("early")).not.toContain("UNHEALTHY");
  });

  async function migrations(): Promise<readonly unknown[]> {
    return query(server.url(), "select name from kysely_migration");
  }
});
