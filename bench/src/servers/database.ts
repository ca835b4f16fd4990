import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { startEmbeddedPostgres } from "@rollcall/postgres-embedded";
import { silentLogger } from "@rollcall/process";
import { migrate } from "@rollcall/store";
import { Client } from "pg";
import type { BenchContext } from "../bench-context.ts";
import { cpuSecondsOfTree, killTree } from "./process-cpu.ts";

/**
 * A migrated, empty store on a separate Postgres. Its writes are as durable as those of the Postgres that
 * `rollcall up` runs.
 */
export interface BenchDatabase {
  readonly url: string;
  /**
   * The CPU seconds that the processes of the server have used so far, including processes that have
   * ended.
   */
  cpuSeconds(): number;
  /** Stop the server, and wait until it has exited. */
  stop(): Promise<void>;
  /** Start the server again on the same port. */
  start(): Promise<void>;
  /** Kill the server with all its processes. Its supervisor restarts it. Linux only. */
  kill(): void;
}

/**
 * The maximum number of connections of one process of the control plane. They are two pools, and one
 * connection that listens.
 */
const CONNECTIONS_A_PROCESS = 26;
/** The number of connections for the benchmark itself, and for a person with psql. */
const OTHER_CONNECTIONS = 44;
/** The connection limit of the Postgres of `rollcall up`. */
const USUAL_CONNECTIONS = 200;

/**
 * Starts a store for one benchmark, with connections for this many processes. The store ends with the
 * benchmark.
 */
export async function startDatabase(context: BenchContext, processes = 0): Promise<BenchDatabase> {
  const log = silentLogger;
  const dir = join(context.directory, "postgres");
  const connections = Math.max(USUAL_CONNECTIONS, processes * CONNECTIONS_A_PROCESS + OTHER_CONNECTIONS);
  const settings = { max_connections: String(connections) };
  let postgres = await startEmbeddedPostgres({ dir, log, settings });
  const { url } = postgres;
  context.atEnd(() => postgres.stop());
  await migrate(url, log);
  return {
    url,
    cpuSeconds: () => cpuSecondsOfTree(postgres.pid ?? 0),
    stop: () => postgres.stop(),
    start: async () => {
      postgres = await startEmbeddedPostgres({ dir, log });
    },
    kill: () => {
      if (postgres.pid !== null) killTree(postgres.pid);
    },
  };
}

/** Runs statements on a separate connection. */
export async function withClient<T>(url: string, fn: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await fn(client);
  } finally {
    await client.end();
  }
}

/** Writes an access token to the store, and returns its text. The token is named after its role. */
export async function createAccessToken(url: string, role: "admin" | "viewer" = "admin"): Promise<string> {
  const token = randomBytes(24).toString("base64url");
  const hash = createHash("sha256").update(token).digest();
  await withClient(url, (client) =>
    client.query("insert into access_tokens (id, name, role, hash) values ($1, $1, $2, $3)", [
      `bench-${role}`,
      role,
      hash,
    ]),
  );
  return token;
}
