import { errorCode } from "@rollcall/process";
import pg from "pg";
import { DATABASE_NAME } from "./data/data-directory.ts";
import type { ServerLocation } from "./place.ts";

/** How to connect to a server that should belong to a data directory. */
export interface ServerAddress extends ServerLocation {
  readonly password: string;
  readonly dataDirectory: string;
}

/** What a probe found at an address. */
export type Answer =
  /** The server of this data directory: it accepted the directory's password and reports the same directory. */
  | "ours"
  /** Any other result, such as another server or a lost connection. */
  | "foreign"
  /** A server that is starting, shutting down or at its connection limit. */
  | "not-ready"
  | "nothing";

const PROBE_TIMEOUT_MS = 5_000;

/** Ask the server at an address for its data directory. */
export async function askServer(address: ServerAddress): Promise<Answer> {
  const client = createClient(address, "rollcall probe");
  // If the server dies during the probe, the query below rejects. Without this listener, the error event would
  // also end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    return (await isOurs(client, address.dataDirectory)) ? "ours" : "foreign";
  } catch (error) {
    return answerOf(error);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Whether a connected server uses this data directory. */
export async function isOurs(client: pg.Client, dataDirectory: string): Promise<boolean> {
  const { rows } = await client.query<{ data_directory: string }>(
    "select current_setting('data_directory') as data_directory",
  );
  return rows[0]?.data_directory === dataDirectory;
}

/** A client for the maintenance database, outside any pool. */
export function createClient(address: ServerAddress, applicationName: string): pg.Client {
  return new pg.Client({
    host: address.host,
    port: address.port,
    user: DATABASE_NAME,
    password: address.password,
    database: "postgres",
    application_name: applicationName,
    connectionTimeoutMillis: PROBE_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
    keepAlive: true,
  });
}

function answerOf(error: unknown): Answer {
  const code = errorCode(error);
  // No server listens: a clean shutdown removes the socket, and a crash leaves it.
  if (code === "ECONNREFUSED" || code === "ENOENT") return "nothing";
  // The server is starting, shutting down or recovering, all its connections are taken, or too many clients wait
  // at its socket.
  if (code === "57P03" || code === "57P01" || code === "53300" || code === "EAGAIN") {
    return "not-ready";
  }
  // Report any other error as foreign: a wrong password, another protocol or a lost connection does not prove
  // that the server belongs to this directory.
  return "foreign";
}
