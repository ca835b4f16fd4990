import type { Logger } from "@rollcall/process";
import { Kysely, Migrator, PostgresDialect, sql } from "kysely";
import { MIGRATIONS } from "./migrations/index.ts";
import { createPool } from "./pool.ts";

/**
 * Bring the database at `url` to the newest schema. Any number of processes may do so at once: one works, the others
 * wait for it. A database that a newer release has migrated further is left as it is.
 *
 * @throws the driver's error when the server cannot be reached or a migration fails; nothing of that migration remains.
 */
export async function migrate(url: string, log: Logger): Promise<void> {
  const pool = createPool({
    lane: "reserved",
    url,
    log,
    size: 2,
    applicationName: "rollcall migrate",
    // A migration takes as long as it takes, and so does waiting for another process that migrates.
    statementTimeoutMs: 0,
  });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const done = await appliedMigrations(db);
    if (Object.keys(MIGRATIONS).every((name) => done.has(name))) return;
    const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
    const { error, results = [] } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    log.info({ migrations: results.length, to: results.at(-1)?.migrationName }, "database migrated");
  } finally {
    await db.destroy();
  }
}

async function appliedMigrations(db: Kysely<unknown>): Promise<ReadonlySet<string>> {
  const { rows: tables } = await sql`
    select from pg_tables where schemaname = current_schema() and tablename = 'kysely_migration'
  `.execute(db);
  if (tables.length === 0) return new Set();
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  return new Set(rows.map(({ name }) => name));
}
