import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { startEmbeddedPostgres } from "@rollcall/postgres-embedded";
import { silentLogger } from "@rollcall/process";
import { migrate } from "@rollcall/store";
import { Client } from "pg";
import type { BenchContext } from "../bench-context.ts";
import { cpuSecondsOfTree } from "./process-cpu.ts";

/** A migrated, empty record on a Postgres of its own, as durable as the one that `rollcall up` runs. */
export interface BenchDatabase {
  readonly url: string;
  /** CPU seconds that its processes have used so far, those that have ended included. */
  cpuSeconds(): number;
  /** Stop its server, and wait until it has ended. */
  stop(): Promise<void>;
  /** Start it again, at the same place. */
  start(): Promise<void>;
}

/** Connections that one process of the control plane takes at most: two pools, and one that listens. */
const CONNECTIONS_A_PROCESS = 26;
/** For the benchmark itself, and for a person with psql. */
const OTHER_CONNECTIONS = 44;
/** As many as the record of `rollcall up` allows for. */
const USUAL_CONNECTIONS = 200;

/** Starts a record for one benchmark, on which so many processes will work; it ends with it. */
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
  };
}

/** Runs statements on a connection of its own. */
export async function withClient<T>(url: string, fn: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await fn(client);
  } finally {
    await client.end();
  }
}

/** Puts an access token into the record, and answers its text. Its name is that of its role. */
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
