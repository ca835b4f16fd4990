import { type Logger, systemClock } from "@rollcall/process";
import { Kysely, PostgresDialect, sql } from "kysely";
import { type MigrationResult, Migrator } from "kysely/migration";
import { MIGRATIONS } from "./migrations/index.ts";
import { createPool } from "./pool.ts";
import { isLockNotGot } from "./store-error.ts";

/** An hour, with the time that each attempt waits. */
const MOST_ATTEMPTS = 1_200;
const PAUSE_MS = 1_000;
const NEVER = new AbortController().signal;

/**
 * Bring the database at `url`, which leads through no pooler, to the newest schema. Any number of processes may do so
 * at once: one works, the others wait for it. A database that a newer release has migrated further is left as it is.
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
 * A change of a table waits for its longest reader, and everybody else who wants the table waits behind it. So a
 * migration of a table in use sets a lock_timeout, gives up, and is tried again: others go on in between. So it is when
 * Postgres ends it as a deadlock. Each is a transaction of its own, as one of them all would keep what the first has
 * locked while a later one waits for those who wait for it.
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
    if (attempt === 1)
      log.warn({}, "migration waits for a table that others have locked, such as a dump of the database");
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
