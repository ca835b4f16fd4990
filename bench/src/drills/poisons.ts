import { Client } from "pg";

/** The connections of `rollcall up` that stay open as long as the process runs, keyed by application name. */
export const LONG_LIVED: ReadonlyMap<string, string> = new Map([
  ["pools", "rollcall up"],
  ["lease", "rollcall up lease"],
  ["feed", "rollcall up feed"],
]);

/** Statements that make a session useless until it is closed, keyed by name. */
export const SESSION_POISONS: ReadonlyMap<string, string> = new Map([
  ["25006 (read-only)", "set default_transaction_read_only = on"],
  ["25P02 (failed transaction)", "begin; select 1 / 0"],
  ["an open transaction", "begin"],
  ["26000 (lost statements)", "deallocate all"],
  ["42501 (another role)", "set role pg_monitor"],
  ["42P01 (another schema)", "set search_path = pg_temp"],
  ["57014 (a timeout)", "set statement_timeout = 1"],
  ["57P01 (ended)", "select pg_terminate_backend(pg_backend_pid())"],
  ["57P05 (idle timeout)", "set idle_session_timeout = 1"],
  ["no subscriptions", "unlisten *"],
]);

/** Statements after which a listening connection gets no notifications although its queries succeed. */
export const DEAFENING: ReadonlySet<string> = new Set(["begin", "unlisten *"]);

/** A fault of the database, which lasts until it is repaired. */
export interface DatabaseFault {
  readonly name: string;
  begin(sessions: DatabaseSessions): Promise<void>;
  end(sessions: DatabaseSessions): Promise<void>;
}

/**
 * Changes the database and its sessions as an administrator, over a connection that the changes do not affect.
 */
export class DatabaseSessions {
  readonly #client: Client;
  readonly #database: string;

  private constructor(client: Client, database: string) {
    this.#client = client;
    this.#database = database;
  }

  static async open(url: string): Promise<DatabaseSessions> {
    const elsewhere = new URL(url);
    const database = elsewhere.pathname.slice(1);
    elsewhere.pathname = "/postgres";
    const client = new Client({
      connectionString: elsewhere.href,
      options: "-c default_transaction_read_only=off",
      application_name: "administrator",
    });
    // Ignore errors, because a crash of the server closes this connection as well.
    client.on("error", () => {});
    await client.connect();
    return new DatabaseSessions(client, database);
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }

  /** Change the database. `change` is the rest of an `alter database` statement. */
  async alter(change: string): Promise<void> {
    await this.#client.query(`alter database ${this.#database} ${change}`);
  }

  /** Change the whole server, including open sessions. */
  async alterSystem(change: string): Promise<void> {
    await this.#client.query(`alter system ${change}`);
    await this.#client.query("select pg_reload_conf()");
  }

  /** End the sessions of Rollcall with these application names. */
  async terminate(names: readonly string[]): Promise<void> {
    await this.#client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name = any ($2)",
      [this.#database, names],
    );
  }

  /** The ids of the server's processes for sessions with this application name. */
  async pids(name: string): Promise<readonly number[]> {
    const { rows } = await this.#client.query<{ pid: number }>(
      "select pid from pg_stat_activity where datname = $1 and application_name = $2 order by pid",
      [this.#database, name],
    );
    return rows.map(({ pid }) => pid);
  }
}

/** Faults of the database for new sessions. Each fault terminates the open sessions with these names. */
export function faultsOf(names: readonly string[]): readonly DatabaseFault[] {
  const untilReset = (name: string, change: string, reset: string): DatabaseFault => ({
    name,
    begin: async (sessions) => {
      await sessions.alter(change);
      await sessions.terminate(names);
    },
    end: (sessions) => sessions.alter(reset),
  });
  return [
    { name: "57P01 (ended)", begin: (sessions) => sessions.terminate(names), end: async () => {} },
    untilReset(
      "25006 (read-only, for new sessions)",
      "set default_transaction_read_only = on",
      "reset default_transaction_read_only",
    ),
    untilReset("42501 (another role, for new sessions)", "set role = pg_monitor", "reset role"),
    untilReset("42P01 (another schema, for new sessions)", "set search_path = pg_temp", "reset search_path"),
    untilReset("55000 (no connections)", "allow_connections false", "allow_connections true"),
  ];
}

/** Faults of the server for all sessions. */
export const SERVER_FAULTS: readonly DatabaseFault[] = [
  {
    name: "25006 (read-only, for all sessions)",
    begin: (sessions) => sessions.alterSystem("set default_transaction_read_only = on"),
    end: (sessions) => sessions.alterSystem("reset default_transaction_read_only"),
  },
  {
    name: "57P02 and 57P03 (a crash)",
    begin: async (sessions) => {
      const [victim] = await sessions.pids("rollcall up lease");
      if (victim === undefined) throw new Error("the lease has no session");
      process.kill(victim, "SIGKILL");
    },
    end: async () => {},
  },
];
