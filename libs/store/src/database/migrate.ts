import { type Logger, systemClock } from "@rollcall/process";
import { Kysely, PostgresDialect, sql } from "kysely";
import { type MigrationResult, Migrator } from "kysely/migration";
import { MIGRATIONS } from "./migrations/index.ts";
import { createPool } from "./pool.ts";
import { isLockNotGot } from "./store-error.ts";

/** Maximum number of attempts to migrate. They take an hour, including the time that each attempt waits for locks. */
const MOST_ATTEMPTS = 1_200;
const PAUSE_MS = 1_000;
const NEVER = new AbortController().signal;

/**
 * Migrate the database at `url`, which must not lead through a pooler, to the newest schema. Several processes can
 * call this concurrently: one migrates, the others wait. A database that a newer release has migrated is left
 * unchanged.
 *
 * @throws the driver's error when the server cannot be reached or a migration fails. A failed migration changes
 *   nothing.
 */
export async function migrate(url: string, log: Logger): Promise<void> {
  const pool = createPool({
    lane: "reserved",
    url,
    log,
    size: 2,
    applicationName: "rollcall migrate",
    // Set no time limit for a migration, or for the wait for another migrating process.
    statementTimeoutMs: 0,
    checksSessions: false,
  });
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    const done = await appliedMigrations(db);
    if (Object.keys(MIGRATIONS).every((name) => done.has(name))) return;
    const results = await migrateToLatest(db, log);
    log.info({ migrations: results.length, to: results.at(-1)?.migrationName }, "database migrated");
  } finally {
    await db.destroy();
  }
}

/**
 * Apply the missing migrations.
 *
 * To change a table, a migration waits for the table's longest reader, and blocks every other client of the table in
 * the meantime. So a migration of a table in use sets a lock_timeout, gives up, and is retried; other clients continue
 * between attempts. It is also retried when Postgres ends it because of a deadlock.
 *
 * Each migration is a separate transaction. A single transaction would hold the locks of earlier migrations while a
 * later migration waits for clients, which may in turn wait for those locks.
 */
async function migrateToLatest(db: Kysely<unknown>, log: Logger): Promise<readonly MigrationResult[]> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } });
  const done: MigrationResult[] = [];
  for (let attempt = 1; ; ) {
    const { error, results = [] } = await migrator.migrateUp();
    if (error === undefined && results.length === 0) return done;
    if (error === undefined) {
      done.push(...results);
      continue;
    }
    if (!isLockNotGot(error) || attempt === MOST_ATTEMPTS) throw error;
    if (attempt === 1) log.warn({}, "migration waits for a locked table, which a dump of the database may hold");
    attempt += 1;
    await systemClock.sleep(PAUSE_MS, NEVER);
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
