import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from "kysely";
import type pg from "pg";
import { connectionConfig } from "../database/pool.ts";
import { StoreClient } from "../database/store-client.ts";
import { toConnectError, toStoreError } from "../database/store-error.ts";

/** A connection with a transaction that reads or writes the whole database. */
export interface StoreSession {
  readonly client: pg.Client;
  /** Runs statements in the transaction, on its connection. */
  readonly db: Kysely<unknown>;
  commit(): Promise<void>;
}

const LOCK_TIMEOUT_MS = 10_000;

/**
 * Run `work` in one transaction on a separate connection, which is closed afterwards. Without `commit`, the
 * transaction is rolled back. Settings apply only to the transaction, so this also works through a pooler.
 */
export async function inStoreSession<T>(
  {
    url,
    applicationName,
    mode,
  }: { readonly url: string; readonly applicationName: string; readonly mode: "read" | "write" },
  work: (session: StoreSession) => Promise<T>,
): Promise<T> {
  const client = new StoreClient(connectionConfig({ url, applicationName }));
  // Ignore the error event, because a lost connection also rejects the current statement. Without a listener, the
  // event would end this process.
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

/**
 * Settings of the transaction: no limit on a statement's duration, because a copy can take any time, and text
 * formats that are the same on every server.
 */
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

/** A pool with a single connection, for callers that run one statement at a time. */
function poolOfOne(client: pg.Client): PostgresPool {
  const connection = {
    query: (text: string, parameters: readonly unknown[]) => client.query(text, [...parameters]),
    release: () => {},
  };
  // The cast leaves out cursors, which are part of the type but not used here.
  return { connect: async () => connection as unknown as PostgresPoolClient, end: async () => {}, options: {} };
}

/** List the applied migrations, in order. */
export async function appliedMigrations(db: Kysely<unknown>): Promise<readonly string[]> {
  const { rows: tables } = await sql`
    select from pg_tables where schemaname = current_schema() and tablename = 'kysely_migration'
  `.execute(db);
  if (tables.length === 0) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}
