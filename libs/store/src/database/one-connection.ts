import { type ConnectionProvider, type DatabaseConnection, DummyDriver, Kysely, PostgresDialect } from "kysely";
import type { Database } from "./schema.ts";

/**
 * Run `fn` with one connection, whose statements are sent as soon as they are asked for: those asked for before earlier
 * ones were answered share a round trip (see `together()`), and the server carries them out in that order. Kysely's own
 * `connection()` and `transaction()` send one at a time.
 */
export function onOneConnection<T>(db: Kysely<Database>, fn: (connection: Kysely<Database>) => Promise<T>): Promise<T> {
  const shared = db.getExecutor();
  return shared.provideConnection((connection) => {
    const executor = shared.withConnectionProvider(new GivenConnection(connection));
    return fn(new Kysely<Database>({ executor, ...UNUSED }));
  });
}

class GivenConnection implements ConnectionProvider {
  readonly #connection: DatabaseConnection;

  constructor(connection: DatabaseConnection) {
    this.#connection = connection;
  }

  provideConnection<T>(consumer: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
    return consumer(this.#connection);
  }
}

/** What Kysely would begin transactions with, or look at tables: neither is done with a connection that is given. */
const DRIVER = new DummyDriver();
const DIALECT = new PostgresDialect({ pool: () => Promise.reject(new Error("this connection has no pool")) });
const UNUSED = { config: { dialect: DIALECT }, dialect: DIALECT, driver: DRIVER };

/**
 * Wait for the answers of statements of one transaction that were asked for together, and so share a round trip. When
 * some fail it throws the error of the first of them, once all are answered: the others only say that the transaction
 * has failed, and none is sent any more after that.
 *
 * @param answers in the order in which the statements were asked for.
 */
export async function together<T extends readonly Promise<unknown>[] | []>(
  answers: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  await Promise.allSettled(answers);
  return Promise.all(answers);
}
