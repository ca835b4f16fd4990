import { randomBytes } from "node:crypto";
import { postgresPlace } from "@rollcall/domain";
import { type Clock, StartError } from "@rollcall/process";
import { sql } from "kysely";
import { STORE_SEQUENCES, STORE_TABLES } from "./object-names.ts";
import { connectionConfig, type StoreAddress } from "./pool.ts";
import type { Db, LaneStore } from "./store.ts";
import { StoreClient } from "./store-client.ts";
import { isConnectionLimit, isNotTold, storeErrorCode, toConnectError, toStoreError } from "./store-error.ts";

/** The store to check, and the connections that the process opens. */
export interface CheckConnectionsOptions {
  readonly store: LaneStore;
  /** Maximum number of connections that the process opens through `Database.URL`. */
  readonly pooled: number;
  /**
   * Maximum number of connections with their own session that the process opens, through `Database.DirectURL` if it is
   * set.
   */
  readonly sessions: number;
  readonly clock: Clock;
}

/** How long to wait for a notification, which normally arrives within milliseconds of the commit. */
const NOTIFIED_WITHIN_MS = 5_000;
const ANSWER_TIMEOUT_MS = 20_000;
/**
 * How long the check holds a pooler's session, so that the next statement of another client gets a different session.
 */
const KEPT_MS = 1_000;
/** Maximum number of names in a message. */
const MOST_NAMED = 3;

/**
 * Check each kind of connection. Also check that the database and any pooler in front of it support what the process
 * needs: writes, enough connections, notifications, and prepared statements. Without this check, everything would look
 * healthy at first, and changes would later fail or be noticed late.
 *
 * @throws StartError that names the setting to change; StoreUnavailableError when the database does not respond.
 */
export async function checkConnections(options: CheckConnectionsOptions): Promise<void> {
  const { store } = options;
  // Check in a transaction, because a pooler in statement mode refuses transactions.
  await store.transaction((tx) => checkRights(tx, store.address));
  await checkLimits(options);
  await checkNotifications(options);
  await checkPreparedStatements(options);
}

/**
 * Check the rights on tables and sequences. They may be missing if the migrations ran with another role: that of the
 * direct URL, or of `rollcall migrate`.
 */
async function checkRights(db: Db, { url }: StoreAddress): Promise<void> {
  const { rows } = await sql<{ readonly role: string; readonly name: string }>`
    select current_user::text as role, c.relname::text as name
    from pg_class as c
    where c.relnamespace = current_schema()::regnamespace
      and case
        when c.relkind = 'r' and c.relname = any(${STORE_TABLES}) then not (
          has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
        when c.relkind = 'S' and c.relname = any(${STORE_SEQUENCES}) then not has_sequence_privilege(c.oid, 'usage')
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
  /** The server's limit for all roles except superusers. */
  readonly server: number;
  /** The role's limit; -1 for none. */
  readonly ofRole: number;
  /** The database's limit; -1 for none. */
  readonly ofDatabase: number;
}

async function checkLimits({ store, pooled, sessions }: CheckConnectionsOptions): Promise<void> {
  const { url, directUrl } = store.address;
  if (directUrl === undefined) {
    await checkServerLimits(store.db, url, pooled + sessions);
    return;
  }
  // Open all connections, because a pooler applies its limits only when connections are opened. They cost the pooler
  // little.
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
    `the server at ${postgresPlace(url)} accepts ${open.length} more connections, but this process opens up to ` +
      `${pooled} (${text}): raise its client limit (max_client_conn of PgBouncer), or lower Database.PoolSize ` +
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
      `Postgres at ${postgresPlace(url)} allows ${limit} connections, but this process opens up to ${needed}: raise ` +
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
    // Ignore a refused LISTEN, which some poolers do not support: no notification arrives then.
    if (!isNotTold(error)) throw toStoreError(error);
  } finally {
    await listener.end().catch(() => {});
  }
  if (received.signal.aborted) return;
  throw new StartError(
    `Postgres notifications do not arrive through ${postgresPlace(directUrl ?? url)}, so changes would be noticed ` +
      "late: a pooler in transaction mode is in between. " +
      (directUrl === undefined
        ? "Set Database.DirectURL to the address of Postgres itself"
        : "Database.DirectURL must be the address of Postgres itself"),
  );
}

/**
 * Check that a prepared statement is still known in a later transaction. The statement belongs to a session of the
 * server, and a pooler that does not track the statement gives the client another session for the next transaction. A
 * second client that occupies the first session reliably causes this.
 */
async function checkPreparedStatements({ store, clock }: CheckConnectionsOptions): Promise<void> {
  const { url, directUrl, preparedStatements = true } = store.address;
  // Skip the check without a direct URL: notifications then arrive through the URL, so each client has its own session.
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
    // Begin with `other`, which gets the session of `client`, because poolers hand out the most recently returned
    // session.
    await other.query("begin");
    const again = client.query(statement).finally(() => answered.abort());
    again.catch(() => {});
    // Limit the wait: a pooler with only one session blocks the second statement until `other` returns the session.
    await clock.sleep(KEPT_MS, answered.signal).catch(() => {});
    await other.query("rollback");
    await again;
  } catch (error) {
    if (!LOST_STATEMENT.test(storeErrorCode(error))) throw toStoreError(error);
    throw new StartError(
      `prepared statements do not work through the pooler at ${postgresPlace(url)}: set Database.PreparedStatements ` +
        "to off, or let the pooler track them (PgBouncer 1.21 or later with max_prepared_statements above 0)",
      { cause: error },
    );
  } finally {
    await Promise.all([client, other].map((it) => it.end().catch(() => {})));
  }
}

/** SQLSTATEs for a prepared statement that is missing, or belongs to another client. */
const LOST_STATEMENT = /^(26000|42P05)$/;

async function openClient({ applicationName }: LaneStore, url: string): Promise<StoreClient> {
  const client = new StoreClient(connectionConfig({ url, applicationName: `${applicationName} check` }));
  // Ignore the error event, because a lost connection also rejects the query. Without a listener, the event would end
  // this process.
  client.on("error", () => {});
  await client.connect().catch((error: unknown) => {
    void client.end().catch(() => {});
    throw toConnectError(error);
  });
  return client;
}
