import { activeSpan, errorCode, type Logger } from "@rollcall/process";
import { Kysely, type LogEvent, PostgresDialect, sql, type Transaction } from "kysely";
import { type Change, type CommittedChange, commitChange } from "./change.ts";
import { type ClusterIdentity, identifyCluster } from "./cluster.ts";
import { checkDirectUrl } from "./direct-url.ts";
import { type BoundedPool, createPool, type Lane, type PoolUse, type StoreAddress } from "./pool.ts";
import type { Database } from "./schema.ts";

declare const insideTransaction: unique symbol;

/** A transaction. Functions that lock or write accept only this type, so they cannot run outside a transaction. */
export type Tx = Transaction<Database> & { readonly [insideTransaction]: true };

/** Anything that can read the database. */
export type Db = Kysely<Database> | Tx;

/**
 * Read the current time of the database in milliseconds since 1970. now() in SQL would return the start of the
 * transaction, which may have waited for a lock.
 */
export async function storeTimeMs(db: Db): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp()::timestamptz(3) as now`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not return the time");
  return row.now.getTime();
}

/** How to reach the database. */
export interface StoreOptions extends StoreAddress {
  /** Maximum number of connections for calls. Default 10. */
  readonly poolSize?: number;
  /** Maximum number of connections for work that keeps nodes safe. Default 6. */
  readonly reservedPoolSize?: number;
  readonly log: Logger;
  /** The name that `pg_stat_activity` shows for the connections. */
  readonly applicationName: string;
  /** Maximum duration of a statement in milliseconds, including lock waits. Default 15000. */
  readonly statementTimeoutMs?: number;
  /** How long to wait for a connection, in milliseconds. Default 5000. */
  readonly waitMs?: number;
}

/**
 * The store, using the connections of one lane. A function that can wait for connections that callers occupy takes a
 * CallStore. A function that must not wait for callers takes a ReservedStore. A function that works with both lanes
 * takes a LaneStore. A CallStore and a ReservedStore are not interchangeable.
 */
export interface LaneStore<L extends Lane = Lane> {
  readonly lane: L;
  readonly db: Kysely<Database>;
  readonly address: StoreAddress;
  readonly applicationName: string;
  /**
   * Run `fn` in one READ COMMITTED transaction. If `fn` throws, the transaction is rolled back and the error is
   * rethrown. If the connection fails during the commit, it is unknown whether the transaction took effect.
   */
  transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Like `transaction`, for changes with events. The events that `fn` returns are appended and committed in one round
   * trip, so that the feed lock is held as briefly as possible. `fn` itself must not append events.
   */
  change<T>(fn: (tx: Tx) => Promise<Change<T>>): Promise<CommittedChange<T>>;
  clusterId(): string;
  /** The secret that all processes of the cluster share, 32 bytes. */
  clusterSecret(): Buffer;
  /** Identifies this history of the event log. A resume token from another history is not valid here. */
  logId(): string;
  /** Read the log id again, because it may have changed while the connection was lost. */
  refreshLogId(): Promise<string>;
}

/** The store for calls. A call that gets no connection in time is refused as OVERLOADED. */
export type CallStore = LaneStore<"calls">;

/**
 * The store for work that keeps nodes safe: leases, sessions, transitions, the brake, the feed, upkeep. Only a fixed
 * number of loops, and batches that run one at a time, use its connections. Never use it for a call: callers could
 * occupy all connections.
 */
export type ReservedStore = LaneStore<"reserved">;

/** The open store of a process. */
export interface Store extends CallStore {
  readonly reserved: ReservedStore;
  /** The current use of both lanes' connections. */
  use(): readonly PoolUse[];
  close(): Promise<void>;
}

const DEFAULT_POOL_SIZE = 10;
const DEFAULT_RESERVED_POOL_SIZE = 6;
const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000;

/**
 * Connect to a migrated database, and read or create the cluster's identity.
 *
 * @throws the driver's error when the server cannot be reached, or the schema does not exist.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { poolSize = DEFAULT_POOL_SIZE, reservedPoolSize = DEFAULT_RESERVED_POOL_SIZE } = options;
  const calls = openLane("calls", options, poolSize);
  const reserved = openLane("reserved", options, reservedPoolSize);
  const close = async () => {
    await Promise.all([calls.db.destroy(), reserved.db.destroy()]);
  };
  try {
    const known = { identity: await identifyCluster(reserved.db) };
    await checkDirectUrl(options, known.identity);
    return {
      ...laneStore(calls, options, known),
      reserved: laneStore(reserved, options, known),
      use: () => [reserved.pool.use(), calls.pool.use()],
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Connections that belong to neither lane. */
export interface OwnConnections {
  readonly db: Kysely<Database>;
  close(): Promise<void>;
}

/** Open separate connections, for work that must continue even while every reserved connection is blocked. */
export function openOwnConnections(
  options: StoreAddress & Pick<StoreOptions, "applicationName" | "log" | "statementTimeoutMs">,
  size: number,
): OwnConnections {
  const { db } = openLane("reserved", options, size);
  return { db, close: () => db.destroy() };
}

function addressOf({ url, directUrl, preparedStatements }: StoreAddress): StoreAddress {
  return {
    url,
    ...(directUrl === undefined ? {} : { directUrl }),
    ...(preparedStatements === undefined ? {} : { preparedStatements }),
  };
}

interface OpenLane<L extends Lane> {
  readonly lane: L;
  readonly pool: BoundedPool;
  readonly db: Kysely<Database>;
}

function openLane<L extends Lane>(lane: L, options: StoreOptions, size: number): OpenLane<L> {
  const { applicationName, log, waitMs, statementTimeoutMs } = options;
  const pool = createPool({
    ...addressOf(options),
    ...{ lane, applicationName, log, size, checksSessions: true },
    statementTimeoutMs: statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS,
    ...(waitMs === undefined ? {} : { waitMs }),
  });
  return { lane, pool, db: new Kysely<Database>({ dialect: new PostgresDialect({ pool }), log: noteQuery }) };
}

/** Maximum length of a query in a trace, in characters. */
const MOST_TEXT = 1_000;

/** Literals in the text of a query, such as the JSON of a commit. */
const LITERALS = /'(?:[^']|'')*'/g;

/** Add the query of a traced call to the call's span. The text does not contain values. */
function noteQuery(event: LogEvent): void {
  const span = activeSpan();
  if (span === undefined) return;
  const text = event.query.sql.trim().replaceAll(LITERALS, "'?'");
  const operation = /^[a-z]+/i.exec(text)?.[0].toLowerCase() ?? "query";
  span.note({
    name: `postgresql ${operation}`,
    durationMs: event.queryDurationMillis,
    values: { "db.system.name": "postgresql", "db.query.text": text.slice(0, MOST_TEXT) },
    ...(event.level === "error" ? { failure: errorCode(event.error) ?? "error" } : {}),
  });
}

/** The identity that both lanes share. When one lane finds a new log id, the other lane sees it too. */
interface Known {
  identity: ClusterIdentity;
}

function laneStore<L extends Lane>(
  { lane, db }: OpenLane<L>,
  options: StoreAddress & Pick<StoreOptions, "applicationName">,
  known: Known,
): LaneStore<L> {
  return {
    lane,
    db,
    address: addressOf(options),
    applicationName: options.applicationName,
    transaction: (fn) => transact(db, fn),
    change: (fn) => commitChange(db, (connection) => fn(connection as Tx)),
    clusterId: () => known.identity.clusterId,
    clusterSecret: () => known.identity.secret,
    logId: () => known.identity.logId,
    refreshLogId: async () => {
      known.identity = await identifyCluster(db);
      return known.identity.logId;
    },
  };
}

async function transact<T>(db: Kysely<Database>, fn: (tx: Tx) => Promise<T>): Promise<T> {
  const { result } = await commitChange(db, async (connection) => ({ result: await fn(connection as Tx), events: [] }));
  return result;
}
