import { errorCode } from "@rollcall/process";
import {
  type ConnectionProvider,
  type DatabaseConnection,
  DummyDriver,
  Kysely,
  PostgresDialect,
  type QueryExecutorProvider,
} from "kysely";
import type { Database } from "./schema.ts";

/** One connection of a pool, for a transaction. */
export interface OneConnection {
  /** For the statements of the transaction. Those that are asked for after `end()` are refused, and not sent. */
  readonly inside: Kysely<Database>;
  /** For those that begin and end it. */
  readonly control: QueryExecutorProvider;
  end(): void;
}

/**
 * Run `fn` with one connection, whose statements are sent as soon as they are asked for: those asked for before earlier
 * ones were answered share a round trip (see `together()`), and the server carries them out in that order. Kysely's own
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
    // It would be carried out by itself, or in the transaction of whoever has the connection next.
    if (this.#isEnded) throw new Error("the transaction of this statement has ended");
    return consumer(this.#connection);
  }
}

class NoTransactions extends DummyDriver {
  override beginTransaction(): Promise<void> {
    return Promise.reject(new Error("there are no transactions inside one"));
  }
}

/** What Kysely would begin transactions with, or look at tables. */
const DIALECT = new PostgresDialect({ pool: () => Promise.reject(new Error("this connection has no pool")) });
const NOT_USED = { config: { dialect: DIALECT }, dialect: DIALECT, driver: new NoTransactions() };

/** Of a statement in a transaction that has failed already: why is told by the one that failed. */
const IN_FAILED_TRANSACTION = "25P02";

/**
 * Wait for the answers of statements of one transaction that were asked for together, and so share a round trip. When
 * some fail it throws the error of the first of them that says why, once all are answered.
 *
 * @param answers in the order in which the statements were asked for.
 */
export async function together<T extends readonly Promise<unknown>[] | []>(
  answers: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const outcomes = await Promise.allSettled(answers);
  const causes = outcomes.flatMap((it) => (it.status === "rejected" ? [it.reason] : []));
  if (causes.length > 0) throw causes.find((cause) => errorCode(cause) !== IN_FAILED_TRANSACTION) ?? causes[0];
  return Promise.all(answers);
}
