import { afterAll, beforeAll, expect, it, jest } from "@jest/globals";
import { query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import { needs } from "../../../libs/testkit/src/jest/needs.ts";
import { until } from "../../../libs/testkit/src/time.ts";
import { freePorts } from "../../../services/rollcall/src/testing/free-ports.ts";
import { endAll, RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { runClient } from "../../../services/rollcall/src/testing/run-client.ts";
import { createServeFixture, type ServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { type Pgbouncer, pgbouncerVersion, startPgbouncer } from "./pgbouncer.ts";
import { type PrivatePostgres, startPrivatePostgres } from "./private-postgres.ts";
import { runJob, walk, walkIn } from "./walk.ts";

jest.setTimeout(600_000);

const { describe: describeWithPgbouncer } = needs("pgbouncer", pgbouncerVersion() > 0);

describeWithPgbouncer("the record behind PgBouncer in transaction mode", () => {
  let postgres: PrivatePostgres;
  let pooler: Pgbouncer;
  let fixture: ServeFixture;
  let flags: readonly string[];
  const services: RollcallProcess[] = [];

  beforeAll(async () => {
    postgres = await startPrivatePostgres();
    pooler = await startPgbouncer(postgres.server.url);
    fixture = await createServeFixture(pooler.url);
    flags = ["--database-direct-url", postgres.server.url, "--set", "Database.PreparedStatements=off"];
  });

  afterAll(async () => {
    await fixture.dispose();
    await pooler.stop();
    await postgres.drop();
  });

  it("should walk join, approve, watch and work", async () => {
    for (const service of ["registry", "health", "admin", "scheduler"] as const) {
      services.push(await fixture.serve(service, ...flags, "--manual-approval"));
    }
    await walk(fixture);
    for (const service of services) expect(service.out).not.toMatch(/prepared statement|unsupported startup parameter/);
    expect(pooler.log()).not.toMatch(/unsupported startup parameter/);
  });

  it("should use the direct address only for the connections that listen", async () => {
    const rows = await query(
      postgres.server.url,
      `select distinct split_part(application_name, ' ', 3) as part
       from pg_stat_activity
       where application_name like 'rollcall %' and client_port <> -1 and query ilike 'listen%'`,
    );
    expect(rows).toEqual([{ part: "feed" }]);
  });
});

describeWithPgbouncer("a pooler that is not configured for", () => {
  let postgres: PrivatePostgres;
  let pooler: Pgbouncer;
  beforeAll(async () => {
    postgres = await startPrivatePostgres();
    pooler = await startPgbouncer(postgres.server.url);
  });
  afterAll(async () => {
    await endAll();
    await pooler.stop();
    await postgres.drop();
  });

  /** Start a service that must refuse to start. Returns its output. */
  async function refusal(url: string, ...more: readonly string[]): Promise<string> {
    const [port] = await freePorts(1);
    const words = ["serve", "registry", "--port", String(port), "--probe-port", "0", ...more];
    const service = new RollcallProcess(words, { DATABASE_URL: url });
    expect(await service.exit()).toBe(1);
    return service.out + service.err;
  }

  it("should refuse to start and name the setting that is missing for notifications", async () => {
    const said = await refusal(pooler.url, "--set", "Database.PreparedStatements=off");
    expect(said).toContain(`Postgres notifications do not arrive through ${pooler.address}`);
    expect(said).toContain("Set Database.DirectURL to the address of Postgres itself");
  });

  it("should end the start when the direct address leads through the pooler, too", async () => {
    const flags = ["--database-direct-url", pooler.url, "--set", "Database.PreparedStatements=off"];
    expect(await refusal(pooler.url, ...flags)).toContain("Database.DirectURL must be the address of Postgres itself");
  });

  it("should end the start with the setting for prepared statements", async () => {
    const said = await refusal(pooler.url, "--database-direct-url", postgres.server.url);
    expect(said).toContain(`prepared statements do not work through the pooler at ${pooler.address}`);
    expect(said).toContain("set Database.PreparedStatements to off");
  });

  it("should refuse to start when the pooler allows too few clients", async () => {
    const small = await startPgbouncer(postgres.server.url, { maxClients: 12 });
    const flags = ["--database-direct-url", postgres.server.url, "--set", "Database.PreparedStatements=off"];
    const said = await refusal(small.url, ...flags);
    await small.stop();
    expect(said).toMatch(/accepts \d+ more connections, but this process opens up to 24/);
    expect(said).toContain("lower Database.PoolSize");
  });

  it("should end the start when there are no transactions", async () => {
    const statements = await startPgbouncer(postgres.server.url, { poolMode: "statement" });
    const said = await refusal(statements.url, "--set", "Database.PreparedStatements=off");
    await statements.stop();
    expect(said).toContain("set pool_mode = transaction for the pooler");
  });
});

describeWithPgbouncer("a pooler that is changed to transaction mode while everything runs", () => {
  let postgres: PrivatePostgres;
  let pooler: Pgbouncer;
  let fixture: ServeFixture;
  beforeAll(async () => {
    postgres = await startPrivatePostgres();
    pooler = await startPgbouncer(postgres.server.url, { poolMode: "session" });
    fixture = await createServeFixture(pooler.url);
  });
  afterAll(async () => {
    await fixture.dispose();
    await pooler.stop();
    await postgres.drop();
  });
  const readyz = async () => {
    const answer = await fetch(`http://${fixture.healthProbes}/readyz`);
    return { status: answer.status, text: await answer.text() };
  };

  it("should report it in /readyz and doctor, and still start work", async () => {
    for (const service of ["registry", "health", "admin", "scheduler"] as const) {
      await fixture.serve(service, "--manual-approval", "--set", "Database.PreparedStatements=off");
    }
    await walkIn(fixture, "before");
    await until("notifications to arrive", async () => (await readyz()).text.includes('"message": "arrive"'));
    await pooler.setPoolMode("transaction");
    // End the server sessions, because they stay assigned to their clients until the clients disconnect.
    await query(
      postgres.server.url,
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    );
    await until(
      "/readyz to name the setting",
      async () => (await readyz()).text.includes("Database.DirectURL"),
      120_000,
    );
    expect((await readyz()).status).toBe(200);
    await runJob(fixture, "before");
    await until(
      "doctor to name the setting",
      async () => {
        const { text } = await runClient("doctor", fixture);
        return /^notifications .*problem/m.test(text) && text.includes("set Database.DirectURL");
      },
      120_000,
    );
  });
});
