import type { Logger } from "@rollcall/runtime";
import { Kysely, PostgresDialect, type Transaction } from "kysely";
import { type Change, type CommittedChange, commitChange } from "./change.ts";
import { identifyCluster } from "./cluster.ts";
import { createPool } from "./pool.ts";
import type { Database } from "./schema.ts";

declare const insideTransaction: unique symbol;

/** A transaction of the record. Functions that lock or write take only this, so they cannot run outside one. */
export type Tx = Transaction<Database> & { readonly [insideTransaction]: true };

/** Anything that can read the record. */
export type Db = Kysely<Database> | Tx;

/** How to reach the record. */
export interface StoreOptions {
  readonly url: string;
  /** Connections at most; 10. */
  readonly poolSize?: number;
  readonly log: Logger;
  /** Shown by `pg_stat_activity`. */
  readonly applicationName: string;
  /** Longest a statement may run, waits for locks included; 15000. */
  readonly statementTimeoutMs?: number;
}

/** The open record. */
export interface Store {
  readonly db: Kysely<Database>;
  readonly url: string;
  readonly applicationName: string;
  /**
   * Run `fn` in one READ COMMITTED transaction; it is rolled back when `fn` throws, and that error is thrown here. An error
   * of the connection during the commit leaves open whether it took effect.
   */
  transaction<T>(fn: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Like `transaction`, for changes that are events too: those that `fn` answers are appended and committed in one round trip,
   * so that the feed lock is held no longer than it must be. `fn` itself appends none.
   */
  change<T>(fn: (tx: Tx) => Promise<Change<T>>): Promise<CommittedChange<T>>;
  clusterId(): string;
  /** The secret that all processes of the cluster share, 32 bytes. */
  clusterSecret(): Buffer;
  /** Names this history of the log; a resume token of another is worthless. */
  logId(): string;
  /** Learn anew which history of the log this is: after the connection was lost it may be another. */
  refreshLogId(): Promise<string>;
  close(): Promise<void>;
}

const DEFAULT_POOL_SIZE = 10;
const DEFAULT_STATEMENT_TIMEOUT_MS = 15_000;

/**
 * Connect to a migrated database and learn (or make) the cluster's identity.
 *
 * @throws the driver's error when the server cannot be reached, or the schema is not there.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { url, applicationName, log } = options;
  const pool = createPool({
    url,
    applicationName,
    log,
    size: options.poolSize ?? DEFAULT_POOL_SIZE,
    statementTimeoutMs: options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS,
  });
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  try {
    let identity = await identifyCluster(db);
    return {
      db,
      url,
      applicationName,
      transaction: (fn) => transact(db, fn),
      change: (fn) => commitChange(db, (connection) => fn(connection as Tx)),
      clusterId: () => identity.clusterId,
      clusterSecret: () => identity.secret,
      logId: () => identity.logId,
      refreshLogId: async () => {
        identity = await identifyCluster(db);
        return identity.logId;
      },
      close: () => db.destroy(),
    };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

async function transact<T>(db: Kysely<Database>, fn: (tx: Tx) => Promise<T>): Promise<T> {
  let failure: { readonly error: unknown } | null = null;
  try {
    const builder = db.transaction().setIsolationLevel("read committed");
    return await builder.execute(async (transaction) => {
      try {
        return await fn(transaction as Tx);
      } catch (error) {
        failure = { error };
        throw error;
      }
    });
  } catch (error) {
    // A rollback over a connection that is gone fails too, and would hide why.
    throw failure === null ? error : (failure as { readonly error: unknown }).error;
  }
}
