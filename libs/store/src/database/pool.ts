import { createHash } from "node:crypto";
import { refuse, StoreUnavailableError } from "@rollcall/errors";
import { errorCode, type Logger, systemClock } from "@rollcall/process";
import { type PostgresCursor, type PostgresPool, type PostgresPoolClient, type PostgresQueryResult, sql } from "kysely";
import pg from "pg";
import { RecordClient, type RecordClientConfig } from "./record-client.ts";
import { classifyStoreError, toConnectError, toStoreError } from "./store-error.ts";

/**
 * Whom a pool serves. `reserved` is for the process's own work that keeps nodes safe: a fixed number of loops, whatever
 * callers do. `calls` is for everything that a caller can cause.
 */
export type Lane = "reserved" | "calls";

/** Where the record is, and what stands before it. */
export interface RecordAddress {
  readonly url: string;
  /**
   * The same database without the pooler that `url` leads through, for what needs a session of its own: notifications,
   * migrations. Absent where no pooler is between.
   */
  readonly directUrl?: string;
  /** Whether connections keep the plans of statements by name, which poolers before PgBouncer 1.21 lose; true. */
  readonly preparedStatements?: boolean;
}

/** How a pool connects. */
export interface PoolOptions extends RecordAddress {
  readonly lane: Lane;
  /** Connections at most. */
  readonly size: number;
  readonly applicationName: string;
  readonly log: Logger;
  /** Longest a statement may run, lock waits included; 0 is for ever. */
  readonly statementTimeoutMs: number;
  /** Longest wait for a connection, new or from the pool; 5000. */
  readonly waitMs?: number;
  /** Whether a new connection must be able to write to the record; only before there is a schema it need not. */
  readonly checksSessions: boolean;
}

/** How a pool is used at this moment, and how often it had no connection to give. */
export interface PoolUse {
  readonly lane: Lane;
  /** Connections at most. */
  readonly size: number;
  readonly inUse: number;
  /** Open and not used. */
  readonly idle: number;
  /** Those that wait for a connection. */
  readonly waiting: number;
  /** The longest wait for a connection within the last half minute, of those that wait still as well. */
  readonly waitingMs: number;
  /** How long the oldest statement under way has had no answer; 0 when there is none. */
  readonly statementMs: number;
  /** Turned away since the pool was opened: because too many waited, or because they waited for too long. */
  readonly turnedAway: Readonly<Record<"full" | "late", number>>;
}

/** A pool for Kysely, with a bounded queue. */
export interface BoundedPool extends PostgresPool {
  use(): PoolUse;
}

/** How long to wait for a connection, new or from the pool. */
const CONNECT_TIMEOUT_MS = 5_000;
/** As many are served well within the wait by queries of a few milliseconds; more would mostly wait for nothing. */
const MOST_WAITING_PER_CONNECTION = 32;
const RETRY_AFTER_MS = 1_000;
/** An idle transaction is cut after this, or a process that was stopped in one would block all others. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
/** Beyond the server's own limit, so that only a server that does not answer at all is given up here. */
const ANSWER_MARGIN_MS = 5_000;
const IDLE_CONNECTION_MS = 30_000;

const INT8_OID = 20;
const TYPES: pg.CustomTypesConfig = {
  // Revisions do not fit a double for ever; a count is cast to int4 and comes as a number.
  getTypeParser: (oid, format) =>
    oid === INT8_OID && format !== "binary" ? BigInt : pg.types.getTypeParser(oid, format),
};

const PREPARED_MARK = "/* prepared */";
const PREPARED_SELECT = `select ${PREPARED_MARK}`;
/** As many as there are marked statements in this package. */
const preparedNames = new Map<string, string>();

/**
 * Begins a statement whose plan every connection keeps, because making it takes longer than the work. Its text is
 * always the same, and names its columns: while the record is migrated, `*` would come to mean others than were
 * planned, and fail. Queries of Kysely's builder take it as their front modifier. Do not mark a look-up of several
 * values in a table that grows with the fleet: it would keep a plan made for an empty table (docs/decisions/0022).
 */
export const PREPARED = sql.raw(PREPARED_MARK);

/**
 * Changes and locks nothing, and fails in a session that cannot change the record: one that is read-only, whose role
 * has lost its rights, or whose search path leads elsewhere. Postgres checks that before it looks for rows.
 */
export const SESSION_CHECK = "select from cluster where false for share";

/** SQLSTATE of a statement in a transaction that has already failed; the error that failed it tells the cause. */
export const IN_FAILED_TRANSACTION = "25P02";

/** Settings of every connection, in a pool or not. */
export function connectionConfig(options: Pick<PoolOptions, "url" | "applicationName">): RecordClientConfig {
  return {
    url: options.url,
    application_name: options.applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: TYPES,
  };
}

/**
 * A pool for Kysely that outlives restarts and failovers of the server: a connection that reports an error which would
 * come again is closed, and one that cannot write is refused from the start. Its queue is bounded in length and in
 * time: who gets no connection is refused as OVERLOADED in the lane of calls, and as if the server were away in the
 * reserved one, whose loops know how to wait for that.
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
  let inUse = 0;
  // Connections of an older generation are closed when they are next used.
  let generation = 0;
  const generations = new WeakMap<pg.PoolClient, number>();
  // Without these listeners a server that goes away ends the process: the pool's for connections at rest, the client's
  // for one that is in a transaction at that moment. The user of the connection gets the error as well.
  pool.on("error", (err) => log.debug({ err }, "database connection lost"));
  pool.on("connect", (client) => {
    generations.set(client, generation);
    client.on("error", (err) => log.debug({ err }, "database connection lost in use"));
  });
  const connect = async () => {
    if (pool.waitingCount >= mostWaiting) {
      turnedAway.full += 1;
      throw noConnection(lane, size, new Error(`${mostWaiting} wait for a connection already`));
    }
    const wait = { sinceMs: systemClock.nowMs() };
    waits.add(wait);
    try {
      for (;;) {
        const client = await pool.connect();
        if (generations.get(client) === generation) return client;
        client.release(true);
      }
    } catch (error) {
      // With connections to spare, it is the server that refuses them.
      if (!isLate(error) || inUse < size) throw toConnectError(error);
      turnedAway.late += 1;
      throw noConnection(lane, size, error);
    } finally {
      waits.delete(wait);
      recentWaits.note(systemClock.nowMs() - wait.sinceMs);
    }
  };
  const onSpoiled = (err: unknown, client: pg.PoolClient) => {
    // Only the first of a generation: the others are about to be closed.
    if (generations.get(client) !== generation) return;
    generation += 1;
    log.warn({ err, lane }, "database sessions cannot be used any more, reconnecting");
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
      waiting: pool.waitingCount,
      waitingMs: Math.max(oldestMs(waits), recentWaits.most()),
      statementMs: oldestMs(statements),
      turnedAway: { ...turnedAway },
    }),
  };
}

const WINDOW_MS = 15_000;

/** The highest of the values of the last 15 to 30 seconds: a sample of one moment would miss most of what happens. */
class RecentMost {
  #window = 0;
  #present = 0;
  #before = 0;

  note(value: number): void {
    this.#move();
    this.#present = Math.max(this.#present, value);
  }

  most(): number {
    this.#move();
    return Math.max(this.#present, this.#before);
  }

  #move(): void {
    const window = Math.floor(systemClock.nowMs() / WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#present : 0;
    this.#present = 0;
    this.#window = window;
  }
}

/** How long ago the first of these began. */
function oldestMs(begun: ReadonlySet<Begun>): number {
  for (const { sinceMs } of begun) return systemClock.nowMs() - sinceMs;
  return 0;
}

function openPool(options: PoolOptions): pg.Pool {
  const { waitMs = CONNECT_TIMEOUT_MS } = options;
  const isPooled = options.directUrl !== undefined;
  return new pg.Pool({
    ...connectionConfig(options),
    // The pool makes its clients from these options, which its types leave out.
    Client: RecordClient as unknown as new () => pg.ClientBase,
    connectionTimeoutMillis: waitMs,
    max: options.size,
    // Statements issued together share a round trip: see together().
    pipeline: true,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    onConnect: async (client) => {
      // Statements rather than parameters of the start, which poolers refuse. Behind a pooler the session is another
      // client's the next moment, so each transaction sets its own; a statement alone is limited by the answer's time.
      const limits = isPooled ? [] : [limitsOf(options, "session")];
      const statements = [...limits, ...(options.checksSessions ? [SESSION_CHECK] : [])];
      const query = { text: statements.join("; "), query_timeout: waitMs };
      if (statements.length > 0) await client.query(query);
    },
  });
}

/** When something that is not over began. A set of them has the oldest first. */
interface Begun {
  readonly sinceMs: number;
}

/** The statements that limit how long a statement, and a transaction that does nothing, may last. */
function limitsOf({ statementTimeoutMs }: PoolOptions, scope: "session" | "local"): string {
  return (
    `set ${scope} statement_timeout = ${statementTimeoutMs}; ` +
    `set ${scope} idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`
  );
}

/** The error of a caller for which there was no connection. */
function noConnection(lane: Lane, size: number, cause: unknown): Error {
  if (lane === "reserved") {
    return new StoreUnavailableError("every reserved connection is in use", { cause });
  }
  return refuse("OVERLOADED", "every connection to the record is in use, try again", {
    metadata: { connections: String(size) },
    retryAfterMs: RETRY_AFTER_MS,
    cause,
  });
}

/** How statements are sent. */
interface QueryOptions {
  /** Longest the server may take to answer one statement, counted from the answer before it; 0 is no limit. */
  readonly answerTimeoutMs: number;
  /** Whether marked statements are sent under a name. */
  readonly keepsPlans: boolean;
  /** Those of the pool that have no answer. */
  readonly statements: Set<Begun>;
  /** Statements that follow the start of each transaction; empty for none. */
  readonly transactionLimits: string;
}

/** What a pool wants to know of a connection that it has given out. */
interface ConnectionUser {
  /** No connection of this age can be used any more. */
  onSpoiled(error: unknown): void;
  /** The connection is returned. Answers whether it may be used again, as far as the pool knows. */
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
  /** Whoever had the session before left a transaction in it that had failed: no statement of ours has. */
  const isLeftOver = (error: unknown) => errorCode(error) === IN_FAILED_TRANSACTION && !hasFailed;
  function query<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query(text: unknown, parameters: readonly unknown[] = []): unknown {
    if (typeof text !== "string") throw new Error("this pool has no cursors");
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
        // The timer starts now, but each statement ahead of it may take as long.
        query_timeout: answerTimeoutMs * underWay,
        ...(name === null ? {} : { name }),
      };
      const answer: pg.QueryResult | pg.QueryResult[] = await client.query(query);
      // Of several statements in one text the first one's rows are wanted.
      const result = Array.isArray(answer) ? answer[0] : answer;
      if (result === undefined) throw new Error("the server answered nothing");
      if (text === "commit" && result.command === "ROLLBACK") {
        throw new Error("transaction was rolled back: an error inside it was not passed on");
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
      // A transaction that could not be ended would become a part of the next one.
      const isIdle = client.getTransactionStatus() === "I";
      client.release(!onRelease() || isBroken || !isIdle);
    },
  };
}

/** The name under which the server keeps a statement; null for one that is not to be kept. */
function preparedName(text: string): string | null {
  if (!text.startsWith(PREPARED_MARK) && !text.startsWith(PREPARED_SELECT)) return null;
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = createHash("sha256").update(text).digest("hex").slice(0, 32);
    preparedNames.set(text, name);
  }
  return name;
}

function isLate(error: unknown): boolean {
  return String(error) === "Error: timeout exceeded when trying to connect";
}
