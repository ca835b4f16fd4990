import { createHash } from "node:crypto";
import { refuse, StoreUnavailableError } from "@rollcall/errors";
import { errorCode, type Logger, systemClock } from "@rollcall/process";
import { type PostgresCursor, type PostgresPool, type PostgresPoolClient, type PostgresQueryResult, sql } from "kysely";
import pg from "pg";
import { RecentMost } from "./recent-most.ts";
import { StoreClient, type StoreClientConfig } from "./store-client.ts";
import { classifyStoreError, toConnectError, toStoreError } from "./store-error.ts";

/**
 * What a pool is used for. `reserved` is for the process's own work that keeps nodes safe: a fixed number of loops,
 * independent of the number of calls. `calls` is for everything that a caller can cause.
 */
export type Lane = "reserved" | "calls";

/** The address of the database, and properties of the pooler in front of it. */
export interface StoreAddress {
  readonly url: string;
  /**
   * A URL of the same database that bypasses the pooler of `url`, for work that needs a session: notifications and
   * migrations. Absent without a pooler.
   */
  readonly directUrl?: string;
  /** Whether connections use named prepared statements, which poolers before PgBouncer 1.21 lose. Default true. */
  readonly preparedStatements?: boolean;
}

/** Options of a pool. */
export interface PoolOptions extends StoreAddress {
  readonly lane: Lane;
  /** Limit of connections. */
  readonly size: number;
  readonly applicationName: string;
  readonly log: Logger;
  /** Maximum duration of a statement in milliseconds, including lock waits; 0 for none. */
  readonly statementTimeoutMs: number;
  /**
   * How long to wait for a connection, new or from the pool, in milliseconds. Default 5000. While all connections are
   * in use, calls wait at most 3000, so that even a call that has also waited elsewhere is refused before its deadline.
   */
  readonly waitMs?: number;
  /** Whether to check that a new connection can write. Not possible before the schema exists. */
  readonly checksSessions: boolean;
}

/** The current use of a pool, and the number of callers that got no connection. */
export interface PoolUse {
  readonly lane: Lane;
  /** Limit of connections. */
  readonly size: number;
  readonly inUse: number;
  /** Number of open connections that are not in use. */
  readonly idle: number;
  /** Number of callers that wait for a connection. */
  readonly waiting: number;
  /** The longest wait for a connection within the last 30 seconds, including unfinished waits. */
  readonly waitingMs: number;
  /** How long the oldest running statement has been running; 0 when there is none. */
  readonly statementMs: number;
  /** Callers refused since the pool was opened: because too many were waiting, or because they waited too long. */
  readonly turnedAway: Readonly<Record<"full" | "late", number>>;
}

/** A pool for Kysely, with a bounded queue. */
export interface BoundedPool extends PostgresPool {
  use(): PoolUse;
}

/** How long to wait for a connection, new or from the pool. */
const CONNECT_TIMEOUT_MS = 5_000;
/** How long a call waits while all connections are in use. */
const CALL_WAIT_MS = 3_000;
/**
 * Maximum number of waiting callers per connection. With queries of a few milliseconds, this many are served well
 * within the wait; most further callers would wait in vain.
 */
const MOST_WAITING_PER_CONNECTION = 32;
const RETRY_AFTER_MS = 1_000;
/**
 * How long a transaction can be idle before the server ends it. Without this limit, a process that stops within a
 * transaction would block all others.
 */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
/**
 * Time in milliseconds that is added to the server's own limit, so that the client gives up only on a server that does
 * not respond.
 */
const ANSWER_MARGIN_MS = 5_000;
const IDLE_CONNECTION_MS = 30_000;

const INT8_OID = 20;
const TYPES: pg.CustomTypesConfig = {
  // Parse int8 as a bigint: revisions can exceed the integers that a double represents. Counts are cast to int4 and
  // arrive as numbers.
  getTypeParser: (oid, format) =>
    oid === INT8_OID && format !== "binary" ? BigInt : pg.types.getTypeParser(oid, format),
};

const PREPARED_MARK = "/* prepared */";
const PREPARED_SELECT = `select ${PREPARED_MARK}`;
/** Names of prepared statements, keyed by text. Bounded by the number of marked statements in this package. */
const preparedNames = new Map<string, string>();

/**
 * Marks the start of a statement whose plan every connection keeps, because planning takes longer than executing it.
 * For queries of Kysely's builder, use it as the front modifier.
 *
 * The text must be constant and name its columns: after a migration, `*` would mean other columns than planned, and the
 * statement would fail. Do not mark a lookup of several values in a table that grows with the fleet: it would keep a
 * plan that was made for an empty table (docs/decisions/0066).
 */
export const PREPARED = sql.raw(PREPARED_MARK);

/**
 * A statement that changes and locks nothing. It fails in a session that cannot write, because the session is
 * read-only, its role has lost its rights, or its search path leads elsewhere. Postgres checks this before it reads
 * rows.
 */
export const SESSION_CHECK = "select from cluster where false for share";

/** SQLSTATE of a statement in a transaction that has already failed. The transaction's first error has the cause. */
export const IN_FAILED_TRANSACTION = "25P02";

/** Settings of every connection, pooled or not. */
export function connectionConfig(options: Pick<PoolOptions, "url" | "applicationName">): StoreClientConfig {
  return {
    url: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: TYPES,
  };
}

/**
 * Create a pool for Kysely that survives restarts and failovers of the server. It closes a connection that reports a
 * persistent error, and does not use a new connection that cannot write.
 *
 * The queue of waiting callers is limited in length and time. A caller without a connection gets OVERLOADED in the
 * calls lane. In the reserved lane it gets StoreUnavailableError, because the lane's loops already wait and retry on
 * that error.
 */
export function createPool(options: PoolOptions): BoundedPool {
  const { lane, size, log } = options;
  const pool = openPool(options);
  const statements = new Set<Begun>();
  const queryOptions: QueryOptions = {
    answerTimeoutMs: options.statementTimeoutMs === 0 ? 0 : options.statementTimeoutMs + ANSWER_MARGIN_MS,
    keepsPlans: options.preparedStatements ?? true,
    statements,
    transactionLimits: options.directUrl === undefined ? "" : limitsOf(options, "local"),
  };
  const mostWaiting = size * MOST_WAITING_PER_CONNECTION;
  const turnedAway = { full: 0, late: 0 };
  const waits = new Set<Begun>();
  const recentWaits = new RecentMost();
  const queueMs = options.waitMs ?? (lane === "calls" ? CALL_WAIT_MS : CONNECT_TIMEOUT_MS);
  let inUse = 0;
  // The current generation of connections. Connections of an older generation are closed instead of being used again.
  let generation = 0;
  const generations = new WeakMap<pg.PoolClient, number>();
  // Log errors, because without error listeners, a lost server would end the process. The pool's listener covers idle
  // connections, the client's covers a connection in a transaction. The user of the connection gets the error as well.
  pool.on("error", (err) => log.debug({ err }, "database connection lost"));
  pool.on("connect", (client) => {
    generations.set(client, generation);
    client.on("error", (err) => log.debug({ err }, "database connection lost in use"));
  });
  const connect = async () => {
    if (waits.size >= mostWaiting) {
      turnedAway.full += 1;
      throw noConnection(lane, size, new Error(`${mostWaiting} already wait for a connection`));
    }
    const wait = { sinceMs: systemClock.nowMs() };
    waits.add(wait);
    try {
      for (;;) {
        const client = await connectWithin(pool, queueMs);
        if (generations.get(client) === generation) return client;
        client.release(true);
      }
    } catch (error) {
      // If the pool still has room for connections, the server did not accept this connection in time.
      if (!isLate(error) || inUse < size) throw toConnectError(error);
      turnedAway.late += 1;
      throw noConnection(lane, size, error);
    } finally {
      waits.delete(wait);
      recentWaits.note(systemClock.nowMs() - wait.sinceMs);
    }
  };
  const onSpoiled = (err: unknown, client: pg.PoolClient) => {
    // Start a new generation only once: further errors of the old generation come from connections that are about to be
    // closed.
    if (generations.get(client) !== generation) return;
    generation += 1;
    log.warn({ err, lane }, "database sessions are no longer usable, reconnecting");
  };
  return {
    connect: async () => {
      const client = await connect();
      inUse += 1;
      return wrap(client, queryOptions, {
        onSpoiled: (error) => onSpoiled(error, client),
        onRelease: () => {
          inUse -= 1;
          return generations.get(client) === generation;
        },
      });
    },
    end: () => pool.end(),
    options: pool.options,
    use: () => ({
      lane,
      size,
      inUse,
      idle: pool.idleCount,
      waiting: waits.size,
      waitingMs: Math.max(oldestMs(waits), recentWaits.most()),
      statementMs: oldestMs(statements),
      turnedAway: { ...turnedAway },
    }),
  };
}

/** The age of the oldest entry in milliseconds; 0 for an empty set. */
function oldestMs(begun: ReadonlySet<Begun>): number {
  for (const { sinceMs } of begun) return systemClock.nowMs() - sinceMs;
  return 0;
}

/** Get a connection from a pool. If all are in use, wait at most `ms` for a free connection. */
async function connectWithin(pool: pg.Pool, ms: number): Promise<pg.PoolClient> {
  const isFull = pool.idleCount === 0 && pool.totalCount >= pool.options.max;
  const connecting = pool.connect();
  if (!isFull) return await connecting;
  return await new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(new Error(LATE));
    }, ms);
    connecting
      .then((client) => (isLate ? client.release() : resolve(client)), reject)
      .finally(() => clearTimeout(timer));
  });
}

function openPool(options: PoolOptions): pg.Pool {
  const { waitMs = CONNECT_TIMEOUT_MS } = options;
  const isPooled = options.directUrl !== undefined;
  return new pg.Pool({
    ...connectionConfig(options),
    // Make the pool create its clients with this class. The types omit the option.
    Client: StoreClient as unknown as new () => pg.ClientBase,
    connectionTimeoutMillis: waitMs,
    max: options.size,
    // Let statements that are issued together share a round trip: see together().
    pipeline: true,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    onConnect: async (client) => {
      // Set the limits with statements, because poolers refuse them as startup parameters. Behind a pooler, the session
      // soon serves another client. So there each transaction sets its own limits, and the answer timeout limits a
      // single statement.
      const limits = isPooled ? [] : [limitsOf(options, "session")];
      const statements = [...limits, ...(options.checksSessions ? [SESSION_CHECK] : [])];
      const query = { text: statements.join("; "), query_timeout: waitMs };
      if (statements.length > 0) await client.query(query);
    },
  });
}

/** When a wait or a statement that is still in progress began. In a set, the oldest comes first. */
interface Begun {
  readonly sinceMs: number;
}

/** Statements that limit the duration of a statement and of an idle transaction. */
function limitsOf({ statementTimeoutMs }: PoolOptions, scope: "session" | "local"): string {
  return (
    `set ${scope} statement_timeout = ${statementTimeoutMs}; ` +
    `set ${scope} idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`
  );
}

/** The error for a caller that got no connection. */
function noConnection(lane: Lane, size: number, cause: unknown): Error {
  if (lane === "reserved") {
    return new StoreUnavailableError("all reserved database connections are in use", { cause });
  }
  return refuse("OVERLOADED", "all database connections are in use, try again", {
    metadata: { connections: String(size) },
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}

/** How a connection sends statements. */
interface QueryOptions {
  /** How long the server can take to answer one statement, counted from the previous answer; 0 for no limit. */
  readonly answerTimeoutMs: number;
  /** Whether marked statements are sent as named prepared statements. */
  readonly keepsPlans: boolean;
  /** The pool's statements that are not answered yet. */
  readonly statements: Set<Begun>;
  /** Statements to send after the start of each transaction; empty for none. */
  readonly transactionLimits: string;
}

/** The callbacks from a connection in use to its pool. */
interface ConnectionUser {
  /** Called when no connection of this generation is usable any longer. */
  onSpoiled(error: unknown): void;
  /** Called when the connection is returned. Returns whether the pool can use it again. */
  onRelease(): boolean;
}

const TRANSACTION_START = /^(begin|start transaction)\b/i;

function wrap(
  client: pg.PoolClient,
  { answerTimeoutMs, keepsPlans, statements, transactionLimits }: QueryOptions,
  { onSpoiled, onRelease }: ConnectionUser,
): PostgresPoolClient {
  let isBroken = false;
  let hasFailed = false;
  let underWay = 0;
  /**
   * Whether an earlier user left a failed transaction in the session. True for this error if no statement of the
   * current user has failed.
   */
  const isLeftOver = (error: unknown) => errorCode(error) === IN_FAILED_TRANSACTION && !hasFailed;
  function query<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(text: unknown, parameters: readonly unknown[] = []): unknown {
    if (typeof text !== "string") throw new Error("this pool does not support cursors");
    return run(text, parameters);
  }
  async function run(text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    underWay += 1;
    const statement: Begun = { sinceMs: systemClock.nowMs() };
    statements.add(statement);
    try {
      const name = keepsPlans ? preparedName(text) : null;
      const isStart = transactionLimits !== "" && TRANSACTION_START.test(text);
      const query = {
        text: isStart ? `${text}; ${transactionLimits}` : text,
        values: [...parameters],
        // The timer of a statement starts when it is sent. Add the time limits of the earlier statements that are not
        // answered yet.
        query_timeout: answerTimeoutMs * underWay,
        ...(name === null ? {} : { name }),
      };
      const answer: pg.QueryResult | pg.QueryResult[] = await client.query(query);
      // If the text contains several statements, return the rows of the first one.
      const result = Array.isArray(answer) ? answer[0] : answer;
      if (result === undefined) throw new Error("the server returned no result");
      if (text === "commit" && result.command === "ROLLBACK") {
        throw new Error("transaction was rolled back: an error inside it was swallowed");
      }
      return result;
    } catch (error) {
      const { spoils } = classifyStoreError(error);
      const failure = isLeftOver(error) ? toConnectError(error) : toStoreError(error);
      isBroken ||= spoils !== "nothing";
      hasFailed = true;
      if (spoils === "pool") onSpoiled(error);
      throw failure;
    } finally {
      statements.delete(statement);
      underWay -= 1;
    }
  }
  return {
    query,
    release: () => {
      // Close a connection whose transaction could not be ended: the next transaction would become part of it.
      const isIdle = client.getTransactionStatus() === "I";
      client.release(!onRelease() || isBroken || !isIdle);
    },
  };
}

/** The name of a prepared statement; null if the statement is not marked. */
function preparedName(text: string): string | null {
  if (!text.startsWith(PREPARED_MARK) && !text.startsWith(PREPARED_SELECT)) return null;
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = createHash("sha256").update(text).digest("hex").slice(0, 32);
    preparedNames.set(text, name);
  }
  return name;
}

/** The error message of the pool's own timeout. */
const LATE = "timeout exceeded when trying to connect";

function isLate(error: unknown): boolean {
  return String(error) === `Error: ${LATE}`;
}
