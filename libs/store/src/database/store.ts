import { activeSpan, errorCode, type Logger } from "@rollcall/process";
import { Kysely, type LogEvent, PostgresDialect, sql, type Transaction } from "kysely";
import { type Change, type CommittedChange, commitChange } from "./change.ts";
import { type ClusterIdentity, identifyCluster } from "./cluster.ts";
import { checkDirectUrl } from "./direct-url.ts";
import { type BoundedPool, createPool, type Lane, type PoolUse, type RecordAddress } from "./pool.ts";
import type { Database } from "./schema.ts";

declare const insideTransaction: unique symbol;

/** A transaction of the record. Functions that lock or write take only this, so they cannot run outside one. */
export type Tx = Transaction<Database> & { readonly [insideTransaction]: true };

/** Anything that can read the record. */
export type Db = Kysely<Database> | Tx;

/**
 * The time of the record as it is now, in milliseconds since 1970; not as it was when the transaction began, because a
 * lock may have been waited for.
 */
export async function recordTimeMs(db: Db): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp()::timestamptz(3) as now`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the record does not tell the time");
  return row.now.getTime();
}

/** How to reach the record. */
export interface StoreOptions extends RecordAddress {
  /** Connections for calls at most; 10. */
  readonly poolSize?: number;
  /** Connections at most for what keeps nodes safe; 6. */
  readonly reservedPoolSize?: number;
  readonly log: Logger;
  /** Shown by `pg_stat_activity`. */
  readonly applicationName: string;
  /** Longest a statement may run, waits for locks included; 15000. */
  readonly statementTimeoutMs?: number;
  /** Longest wait for a connection; 5000. */
  readonly waitMs?: number;
}

/**
 * The record by the connections of one lane. A function that works in either takes a LaneStore; what may wait for
 * connections behind callers takes a CallStore, and what may not takes a ReservedStore: neither can be given in place
 * of the other.
 */
export interface LaneStore<L extends Lane = Lane> {
  readonly lane: L;
  readonly db: Kysely<Database>;
  readonly address: RecordAddress;
  readonly applicationName: string;
  /**
   * Run `fn` in one READ COMMITTED transaction; it is rolled back when `fn` throws, and that error is thrown here. An
   * error of the connection during the commit leaves open whether it took effect.
   */
  transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Like `transaction`, for changes that are events too: those that `fn` answers are appended and committed in one
   * round trip, so that the feed lock is held no longer than it must be. `fn` itself appends none.
   */
  change<T>(fn: (tx: Tx) => Promise<Change<T>>): Promise<CommittedChange<T>>;
  clusterId(): string;
  /** The secret that all processes of the cluster share, 32 bytes. */
  clusterSecret(): Buffer;
  /** Names this history of the log; a resume token of another is worthless. */
  logId(): string;
  /** Learn again which history of the log this is: after the connection was lost it may be another. */
  refreshLogId(): Promise<string>;
}

/** The record for calls. A call that gets no connection in time is refused as OVERLOADED. */
export type CallStore = LaneStore<"calls">;

/**
 * The record for what keeps nodes safe: leases, sessions, transitions, the brake, the feed, upkeep. Its connections are
 * used by a fixed number of loops, and by batches of which one runs at a time; never by a call, or callers could take
 * them all.
 */
export type ReservedStore = LaneStore<"reserved">;

/** The open record of a process. */
export interface Store extends CallStore {
  readonly reserved: ReservedStore;
  /** How the connections of both lanes are used. */
  use(): readonly PoolUse[];
  close(): Promise<void>;
}

const DEFAULT_POOL_SIZE = 10;
const DEFAULT_RESERVED_POOL_SIZE = 6;
const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000;

/**
 * Connect to a migrated database and learn (or make) the cluster's identity.
 *
 * @throws the driver's error when the server cannot be reached, or the schema is not there.
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

/** Connections outside the lanes. */
export interface OwnConnections {
  readonly db: Kysely<Database>;
  close(): Promise<void>;
}

/**
 * Open connections that are not shared, for what must go on even when every reserved one waits for something.
 */
export function openOwnConnections(
  options: RecordAddress & Pick<StoreOptions, "applicationName" | "log" | "statementTimeoutMs">,
  size: number,
): OwnConnections {
  const { db } = openLane("reserved", options, size);
  return { db, close: () => db.destroy() };
}

function addressOf({ url, directUrl, preparedStatements }: RecordAddress): RecordAddress {
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

/** The longest text of a query that a trace has. */
const MOST_TEXT = 1_000;

/** What is written into the text of a query: what is committed, as JSON, among others. */
const LITERALS = /'(?:[^']|'')*'/g;

/** A query of a call that is traced is a part of its span. Values are not in its text. */
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

/**
 * What both lanes know is one: otherwise what one of them learns of a new history of the log the other would not know.
 */
interface Known {
  identity: ClusterIdentity;
}

function laneStore<L extends Lane>(
  { lane, db }: OpenLane<L>,
  options: RecordAddress & Pick<StoreOptions, "applicationName">,
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
