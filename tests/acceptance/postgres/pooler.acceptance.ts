import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { query } from "../../../libs/postgres-embedded/test/embedded-servers.ts";
import type { RollcallProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createServeFixture, type ServeFixture } from "../../../services/rollcall/src/testing/serve-fixture.ts";
import { type Pgbouncer, startPgbouncer } from "./pgbouncer.ts";
import { type PrivatePostgres, startPrivatePostgres } from "./private-postgres.ts";
import { walk } from "./walk.ts";

jest.setTimeout(600_000);

const hasPgbouncer = spawnSync("pgbouncer", ["--version"]).status === 0;

(hasPgbouncer ? describe : describe.skip)("the record behind PgBouncer in transaction mode", () => {
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

  it("should hold nothing but what listens directly", async () => {
    const rows = await query(
      postgres.server.url,
      `select distinct split_part(application_name, ' ', 3) as part
       from pg_stat_activity
       where application_name like 'rollcall %' and client_port <> -1 and query ilike 'listen%'`,
    );
    expect(rows).toEqual([{ part: "feed" }]);
  });
});
