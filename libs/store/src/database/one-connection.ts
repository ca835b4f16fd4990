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
  /** Sends the statements of the transaction. It rejects statements that are issued after `end()`. */
  readonly inside: Kysely<Database>;
  /** Sends the statements that begin and end the transaction. */
  readonly control: QueryExecutorProvider;
  end(): void;
}

/**
 * Run `fn` with one connection that sends statements as soon as they are issued. Statements that are issued before
 * earlier ones are answered share a round trip (see `together()`). The server executes statements in the order of
 * issue. Kysely's own `connection()` and `transaction()` send one statement at a time.
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
    // Refuse the statement, because Postgres would commit it separately, or as part of the connection's next
    // transaction.
    if (this.#isEnded) throw new Error("the transaction of this statement has ended");
    return consumer(this.#connection);
  }
}

class NoTransactions extends DummyDriver {
  override beginTransaction(): Promise<void> {
    return Promise.reject(new Error("transactions cannot be nested"));
  }
}

/**
 * A dialect without a pool. Kysely needs a pool only to begin transactions and to inspect tables, which this
 * connection never does.
 */
const DIALECT = new PostgresDialect({ pool: () => Promise.reject(new Error("this connection has no pool")) });
const NOT_USED = { config: { dialect: DIALECT }, dialect: DIALECT, driver: new NoTransactions() };

/**
 * Wait for statements of one transaction that were issued together, so that they share a round trip. Returns the answer
 * of each statement under its name. If any of them fails, this throws after all are answered: the first error other
 * than "current transaction is aborted".
 *
 * @param statements in the order of issue, which is the order of the keys.
 */
export async function together<T extends Readonly<Record<string, Promise<unknown>>>>(
  statements: T,
): Promise<{ -readonly [Name in keyof T]: Awaited<T[Name]> }> {
  const outcomes = await Promise.allSettled(Object.values(statements));
  const causes = outcomes.flatMap((it) => (it.status === "rejected" ? [it.reason] : []));
  if (causes.length > 0) throw causes.find((cause) => errorCode(cause) !== IN_FAILED_TRANSACTION) ?? causes[0];
  const names = Object.keys(statements);
  const answers = outcomes.map((it, index) => [names[index], it.status === "fulfilled" ? it.value : undefined]);
  // The cast is safe, because each name has the answer of its statement.
  return Object.fromEntries(answers) as { -readonly [Name in keyof T]: Awaited<T[Name]> };
}
