import { errorCode } from "@rollcall/process";
import {
  type ConnectionProvider,
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresDialect,
  type QueryExecutorProvider,
} from "kysely";
import { IN_FAILED_TRANSACTION } from "./pool.ts";
import type { Database } from "./schema.ts";

/** One connection of a pool, for a transaction. */
export interface OneConnection {
  /** Sends the statements of the transaction; rejects any that is issued after `end()`. */
  readonly inside: Kysely<Database>;
  /** Sends the statements that begin and end it. */
  readonly control: QueryExecutorProvider;
  end(): void;
}

/**
 * Run `fn` with one connection that sends statements as soon as they are issued: those issued before earlier ones were
 * answered share a round trip (see `together()`), and the server executes them in that order. Kysely's own
 * `connection()` and `transaction()` send one at a time.
 */
export function onOneConnection<T>(db: Kysely<Database>, fn: (connection: OneConnection) => Promise<T>): Promise<T> {
  const shared = db.getExecutor();
  return shared.provideConnection((connection) => {
    const given = new GivenConnection(connection);
    const control = shared.withConnectionProvider(new GivenConnection(connection));
    return fn({
      inside: new Kysely<Database>({ executor: shared.withConnectionProvider(given), ...NOT_USED }),
      control: { getExecutor: () => control },
      end: () => given.end(),
    });
  });
}

class GivenConnection implements ConnectionProvider {
  readonly #connection: DatabaseConnection;
  #isEnded = false;

  constructor(connection: DatabaseConnection) {
    this.#connection = connection;
  }

  end(): void {
    this.#isEnded = true;
  }

  async provideConnection<T>(consumer: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    // Otherwise Postgres would commit it on its own, or as part of the next transaction on this connection.
    if (this.#isEnded) throw new Error("the transaction of this statement has ended");
    return consumer(this.#connection);
  }
}

class NoTransactions extends DummyDriver {
  override beginTransaction(): Promise<void> {
    return Promise.reject(new Error("there are no transactions inside one"));
  }
}

/** Kysely needs these to begin transactions and to inspect tables, which is not done on this connection. */
const DIALECT = new PostgresDialect({ pool: () => Promise.reject(new Error("this connection has no pool")) });
const NOT_USED = { config: { dialect: DIALECT }, dialect: DIALECT, driver: new NoTransactions() };

/**
 * Wait for statements of one transaction that were issued together, and so share a round trip. If any fails, it throws
 * once all are answered: the first error that is not just "the transaction is aborted".
 *
 * @param answers in the order in which the statements were issued.
 */
export async function together<T extends readonly Promise<unknown>[] | []>(
  answers: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const outcomes = await Promise.allSettled(answers);
  const causes = outcomes.flatMap((it) => (it.status === "rejected" ? [it.reason] : []));
  if (causes.length > 0) throw causes.find((cause) => errorCode(cause) !== IN_FAILED_TRANSACTION) ?? causes[0];
  return Promise.all(answers);
}
