import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from "kysely";
import type pg from "pg";
import { connectionConfig } from "../database/pool.ts";
import { RecordClient } from "../database/record-client.ts";
import { toConnectError, toStoreError } from "../database/store-error.ts";

/** One connection, in one transaction, by which the whole record is read or written. */
export interface RecordSession {
  readonly client: pg.Client;
  /** Statements over the same connection, in the same transaction. */
  readonly db: Kysely<unknown>;
  commit(): Promise<void>;
}

const LOCK_TIMEOUT_MS = 10_000;

/**
 * Run `work` in one transaction over a connection of its own, which is ended afterwards: without `commit` none of it
 * remains. Settings hold for the transaction alone, so that a pooler may be between.
 */
export async function inRecordSession<T>(
  {
    url,
    applicationName,
    mode,
  }: { readonly url: string; readonly applicationName: string; readonly mode: "read" | "write" },
  work: (session: RecordSession) => Promise<T>,
): Promise<T> {
  const client = new RecordClient(connectionConfig({ url, applicationName }));
  // Its loss rejects the statement under way as well; without a listener it would end this process.
  client.on("error", () => {});
  try {
    await client.connect().catch((error: unknown) => Promise.reject(toConnectError(error)));
    const terms = mode === "read" ? "isolation level repeatable read read only" : "isolation level read committed";
    await client.query(`start transaction ${terms}; ${SETTINGS}`);
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: poolOfOne(client) }) });
    return await work({ client, db, commit: async () => void (await client.query("commit")) });
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.end().catch(() => {});
  }
}

/** How long copying takes is not known, and texts must mean the same wherever they are read. */
const SETTINGS = [
  "statement_timeout = 0",
  "idle_in_transaction_session_timeout = 0",
  `lock_timeout = ${LOCK_TIMEOUT_MS}`,
  "datestyle = 'ISO'",
  "intervalstyle = 'postgres'",
  "timezone = 'UTC'",
  "extra_float_digits = 3",
  "bytea_output = 'hex'",
]
  .map((setting) => `set local ${setting}`)
  .join("; ");

/** A pool that always has the one connection: its user runs one statement at a time. */
function poolOfOne(client: pg.Client): PostgresPool {
  const connection = {
    query: (text: string, parameters: readonly unknown[]) => client.query(text, [...parameters]),
    release: () => {},
  };
  // Cursors, which the type has too, are not used.
  return { connect: async () => connection as unknown as PostgresPoolClient, end: async () => {}, options: {} };
}

/** The migrations that were applied, in order. */
export async function appliedMigrations(db: Kysely<unknown>): Promise<readonly string[]> {
  const { rows: tables } = await sql`
    select from pg_tables where schemaname = current_schema() and tablename = 'kysely_migration'
  `.execute(db);
  if (tables.length === 0) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}
