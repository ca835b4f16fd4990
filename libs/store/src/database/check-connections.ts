import { randomBytes } from "node:crypto";
import { postgresPlace } from "@rollcall/domain";
import { type Clock, StartError } from "@rollcall/process";
import { sql } from "kysely";
import { RECORD_SEQUENCES, RECORD_TABLES } from "../backup/record-schema.ts";
import { connectionConfig, type RecordAddress } from "./pool.ts";
import { RecordClient } from "./record-client.ts";
import type { Db, LaneStore } from "./store.ts";
import { isConnectionLimit, isNotTold, storeErrorCode, toConnectError, toStoreError } from "./store-error.ts";

/** What to check, and for which process. */
export interface CheckConnectionsOptions {
  readonly store: LaneStore;
  /** Connections through `Database.URL` that the process opens at most. */
  readonly pooled: number;
  /** Connections that need a session, at most: through `Database.DirectURL` if that is set. */
  readonly sessions: number;
  readonly clock: Clock;
}

/** After it was committed, a notification takes milliseconds. */
const NOTIFIED_WITHIN_MS = 5_000;
const ANSWER_TIMEOUT_MS = 20_000;
/** How long the check keeps a session of a pooler, so that the next statement of another client gets another one. */
const KEPT_MS = 1_000;
/** Names in a message. */
const MOST_NAMED = 3;

/**
 * Check on each kind of connection that the database and what stands before it support what the process needs: it can
 * write, enough connections are allowed, notifications arrive, and prepared statements work. Otherwise everything would
 * look healthy, and changes would be found late or fail.
 *
 * @throws StartError that names the setting to change; StoreUnavailableError when the database does not answer.
 */
export async function checkConnections(options: CheckConnectionsOptions): Promise<void> {
  const { store } = options;
  // In a transaction, which a pooler in statement mode refuses.
  await store.transaction((tx) => checkRights(tx, store.address));
  await checkLimits(options);
  await checkNotifications(options);
  await checkPreparedStatements(options);
}

/** The migrations may have run as another role: that of the direct URL, or of `rollcall migrate`. */
async function checkRights(db: Db, { url }: RecordAddress): Promise<void> {
  const { rows } = await sql<{ readonly role: string; readonly name: string }>`
    select current_user::text as role, c.relname::text as name
    from pg_class as c
    where c.relnamespace = current_schema()::regnamespace
      and case
        when c.relkind = 'r' and c.relname = any(${RECORD_TABLES}) then not (
          has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
        when c.relkind = 'S' and c.relname = any(${RECORD_SEQUENCES}) then not has_sequence_privilege(c.oid, 'usage')
        else false
      end
    order by 2`.execute(db);
  const [first] = rows;
  if (first === undefined) return;
  const more = rows.length > MOST_NAMED ? ` and ${rows.length - MOST_NAMED} more` : "";
  const names = rows.slice(0, MOST_NAMED).map(({ name }) => name);
  throw new StartError(
    `the role ${first.role} of Database.URL, at ${postgresPlace(url)}, cannot write ${names.join(", ")}${more}: make ` +
      "it the owner of the tables, or grant it select, insert, update and delete on all tables of the schema, and " +
      "usage on all sequences",
  );
}

interface Limits {
  readonly role: string;
  /** For all roles that are not superusers. */
  readonly server: number;
  /** -1 for no limit. */
  readonly ofRole: number;
  /** -1 for no limit. */
  readonly ofDatabase: number;
}

async function checkLimits({ store, pooled, sessions }: CheckConnectionsOptions): Promise<void> {
  const { url, directUrl } = store.address;
  if (directUrl === undefined) {
    await checkServerLimits(store.db, url, pooled + sessions);
    return;
  }
  // The pooler has limits that only connections find out, and these cost it little.
  const clients = Array.from({ length: pooled }, () => openClient(store, url));
  const opened = await Promise.allSettled(clients);
  const open = opened.flatMap((it) => (it.status === "fulfilled" ? [it.value] : []));
  await Promise.all(open.map((client) => client.end().catch(() => {})));
  const refusals: readonly unknown[] = opened.flatMap((it) => (it.status === "rejected" ? [it.reason] : []));
  if (refusals.length === 0) return;
  const refusal = refusals.find(isConnectionLimit);
  if (refusal === undefined) throw toStoreError(refusals[0]);
  const text = Object(Object(refusal).cause ?? refusal).message;
  throw new StartError(
    `what listens at ${postgresPlace(url)} allows ${open.length} more connections, and this process opens up to ` +
      `${pooled} (${text}): raise its limit of clients (max_client_conn of PgBouncer), or lower Database.PoolSize ` +
      "and Database.ReservedPoolSize",
  );
}

async function checkServerLimits(db: Db, url: string, needed: number): Promise<void> {
  const { rows } = await sql<Limits>`
    select
      current_user::text as role,
      current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true), '0')::integer as server,
      coalesce((select rolconnlimit from pg_roles where rolname = current_user), -1) as "ofRole",
      coalesce((select datconnlimit from pg_database where datname = current_database()), -1) as "ofDatabase"
  `.execute(db);
  const [limits] = rows;
  if (limits === undefined) return;
  const found: readonly (readonly [number, string])[] = [
    [limits.server, "max_connections"],
    [limits.ofRole, `the connection limit of the role ${limits.role}`],
    [limits.ofDatabase, "the connection limit of the database"],
  ];
  for (const [limit, name] of found) {
    if (limit < 0 || limit >= needed) continue;
    throw new StartError(
      `Postgres at ${postgresPlace(url)} allows ${limit} connections, and this process opens up to ${needed}: raise ` +
        `${name}, or lower Database.PoolSize and Database.ReservedPoolSize`,
    );
  }
}

async function checkNotifications({ store, clock }: CheckConnectionsOptions): Promise<void> {
  const { url, directUrl } = store.address;
  const channel = `rollcall_start_${randomBytes(8).toString("hex")}`;
  const listener = await openClient(store, directUrl ?? url);
  const received = new AbortController();
  listener.on("notification", () => received.abort());
  try {
    await listener.query(`listen ${channel}`);
    await sql`select pg_notify(${channel}, '')`.execute(store.db);
    await clock.sleep(NOTIFIED_WITHIN_MS, received.signal).catch(() => {});
  } catch (error) {
    // Some poolers refuse LISTEN.
    if (!isNotTold(error)) throw toStoreError(error);
  } finally {
    await listener.end().catch(() => {});
  }
  if (received.signal.aborted) return;
  throw new StartError(
    `notifications of Postgres do not arrive through ${postgresPlace(directUrl ?? url)}, so changes would be found ` +
      "late: a pooler in transaction mode stands between. " +
      (directUrl === undefined
        ? "Set Database.DirectURL to the address of Postgres itself"
        : "Database.DirectURL must be the address of Postgres itself"),
  );
}

/**
 * A prepared statement belongs to a session of the server. A pooler that does not know of it gives the client another
 * session for the next transaction: two clients make that happen for certain.
 */
async function checkPreparedStatements({ store, clock }: CheckConnectionsOptions): Promise<void> {
  const { url, directUrl, preparedStatements = true } = store.address;
  // Where notifications arrive through the URL, its sessions are the client's.
  if (directUrl === undefined || !preparedStatements) return;
  const [client, other] = await Promise.all([openClient(store, url), openClient(store, url)]);
  const statement = {
    name: `rollcall_check_${randomBytes(8).toString("hex")}`,
    text: "select 1",
    query_timeout: ANSWER_TIMEOUT_MS,
  };
  const answered = new AbortController();
  try {
    await client.query(statement);
    // Poolers give out the session that was returned last.
    await other.query("begin");
    const again = client.query(statement).finally(() => answered.abort());
    again.catch(() => {});
    // A pooler with one session lets the second statement wait until the other client returns it.
    await clock.sleep(KEPT_MS, answered.signal).catch(() => {});
    await other.query("rollback");
    await again;
  } catch (error) {
    if (!LOST_STATEMENT.test(storeErrorCode(error))) throw toStoreError(error);
    throw new StartError(
      `prepared statements do not work through the pooler at ${postgresPlace(url)}: set Database.PreparedStatements ` +
        "to off, or let the pooler keep them (PgBouncer 1.21 or later with max_prepared_statements above 0)",
      { cause: error },
    );
  } finally {
    await Promise.all([client, other].map((it) => it.end().catch(() => {})));
  }
}

/** A prepared statement that is not there, or is another client's. */
const LOST_STATEMENT = /^(26000|42P05)$/;

async function openClient({ applicationName }: LaneStore, url: string): Promise<RecordClient> {
  const client = new RecordClient(connectionConfig({ url, applicationName: `${applicationName} check` }));
  // Its loss rejects the query as well; without a listener it would end this process.
  client.on("error", () => {});
  await client.connect().catch((error: unknown) => {
    void client.end().catch(() => {});
    throw toConnectError(error);
  });
  return client;
}
