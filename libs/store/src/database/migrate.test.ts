import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { createGate, createTestDatabase, type TestDatabase, until } from "@rollcall/testkit";
import { captureLog } from "@rollcall/testkit/log-capture";
import { sql } from "kysely";
import { migrate } from "./migrate.ts";
import { openStore } from "./store.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

describe("migrate()", () => {
  it("should be safe for concurrent processes on an empty database", async () => {
    const { db } = database.store;
    const name = "empty_one";
    await sql`drop database if exists ${sql.ref(name)} with (force)`.execute(db);
    await sql`create database ${sql.ref(name)} template template0`.execute(db);
    try {
      const url = new URL(database.url);
      url.pathname = `/${name}`;
      await expect(openStore({ url: url.href, log: silentLogger, applicationName: "early" })).rejects.toThrow(
        'relation "cluster" does not exist',
      );
      await Promise.all(Array.from({ length: 6 }, () => migrate(url.href, silentLogger)));
      await migrate(url.href, silentLogger);
      const stores = await Promise.all(
        Array.from({ length: 4 }, () => openStore({ url: url.href, log: silentLogger, applicationName: "test" })),
      );
      expect(new Set(stores.map((store) => store.clusterId())).size).toBe(1);
      expect(new Set(stores.map((store) => store.clusterSecret().toString("hex"))).size).toBe(1);
      expect(new Set(stores.map((store) => store.logId())).size).toBe(1);
      await Promise.all(stores.map((store) => store.close()));
    } finally {
      await sql`drop database ${sql.ref(name)} with (force)`.execute(db);
    }
  });

  it("should block no reader while a table is locked, and continue when it is free", async () => {
    const { store } = database;
    const { db } = store;
    await takeBackDrains();
    const { log, lines } = captureLog();
    const released = createGate();
    const reader = store.transaction(async (tx) => {
      await sql`lock table execution_observations in access share mode`.execute(tx);
      await released.passed;
    });
    const migrating = migrate(database.url, log);
    await until("the migration to give up once", () => lines.length > 0);
    released.open();
    await Promise.all([reader, migrating]);
    await expect(sql`select gpu_uuids from execution_observations limit 1`.execute(db)).resolves.toBeDefined();
    expect(lines.map(({ msg }) => msg)).toEqual([
      "migration waits for a locked table, which a dump of the database may hold",
      "database migrated",
    ]);
  });

  it("should be retried after a deadlock with users of a table that it changed", async () => {
    const { store } = database;
    await takeBackDrains();
    const { log, lines } = captureLog();
    const read = store.transaction(async (tx) => {
      // Prevent this transaction from detecting the deadlock, so that only the migration detects it.
      await sql`set local deadlock_timeout = '10min'`.execute(tx);
      await sql`lock table nodes in row exclusive mode`.execute(tx);
      const waiting = sql`
        select from pg_locks join pg_database on pg_database.oid = database
        where not granted and datname = current_database()`;
      await until("the migration to wait", async () => (await waiting.execute(tx)).rows.length > 0);
      await sql`select from drains limit 1`.execute(tx);
    });
    await Promise.all([migrate(database.url, log), read]);
    await expect(sql`select joined_from from nodes limit 1`.execute(store.db)).resolves.toBeDefined();
    expect(lines.map(({ msg }) => msg)).toContain("database migrated");
  });

  it("should not touch a database that a newer release has migrated", async () => {
    const { db } = database.store;
    await sql`
      insert into kysely_migration (name, timestamp) values ('9999-future', now()::text)`.execute(db);
    await migrate(database.url, silentLogger);
    await sql`delete from kysely_migration where name = '9999-future'`.execute(db);
  });
});

describe("the schema", () => {
  it("should have a comment on every table and an explicit name on every constraint", async () => {
    const { db } = database.store;
    const { rows: bare } = await sql<{ relname: string }>`
      select relname from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r'
        and relname not like 'kysely%' and obj_description(oid, 'pg_class') is null`.execute(db);
    expect(bare).toEqual([]);
    const { rows: constraints } = await sql<{ conname: string; relname: string; contype: string }>`
      select conname, relname, contype from pg_constraint join pg_class on pg_class.oid = conrelid
      where pg_constraint.connamespace = 'public'::regnamespace
        and relname not like 'kysely%' and contype in ('p', 'u', 'f', 'c')`.execute(db);
    expect(constraints.length).toBeGreaterThan(25);
    for (const { conname, relname } of constraints) {
      expect(conname.startsWith(`${relname}_`)).toBe(true);
      // Refuse a name like those that Postgres generates for a check without a name.
      expect(conname).not.toMatch(/_check\d*$/);
    }
  });
});

/** Revert the migration of drains and all later migrations. */
async function takeBackDrains(): Promise<void> {
  const { db } = database.store;
  await sql`drop table process_reports, audit_cut, webhook_backlog, webhooks`.execute(db);
  await sql`drop table sign_in_codes, declared_objects`.execute(db);
  await sql`
    alter table access_tokens drop column kind, drop column owner_token, drop column owner_issuer,
      drop column owner_subject, drop column ends_at, drop column idle_ms, drop column groups_left_out`.execute(db);
  await sql`alter table nodes drop column joined_from, drop column disturbed_at`.execute(db);
  await sql`alter table node_sessions drop column reboot_suspected`.execute(db);
  await sql`alter table request_ids drop column digest`.execute(db);
  await sql`
    create index node_sessions_troubled_idx on node_sessions (replica_id)
    where flapping_since is not null or gpu_troubles <> '[]' or rebooted_at is not null`.execute(db);
  await sql`alter table execution_observations drop column ports, drop column gpu_uuids, drop column unknown`.execute(
    db,
  );
  await sql`alter table jobs drop column ready_version, drop column same_versions, drop column undone`.execute(db);
  await sql`alter table executions drop column stop_ordered_at`.execute(db);
  await sql`alter table job_versions drop column ready_at, drop column origin`.execute(db);
  await sql`alter table cluster drop column scheduler_led`.execute(db);
  await sql`drop index jobs_actor_idx`.execute(db);
  await sql`
    alter table jobs drop column millicores, drop column one_node, drop column rolled_out,
      drop column waiting_nodes`.execute(db);
  await sql`drop index nodes_scheduling_of_idx, nodes_holds_until_idx, drains_waiting_idx`.execute(db);
  await sql`drop function scheduling_of`.execute(db);
  await sql`
    alter table drains drop column deadline_ms, drop column selection, drop column max_parallel,
      drop column unconfirmed`.execute(db);
  await sql`delete from kysely_migration where name >= '0021-drains'`.execute(db);
}
