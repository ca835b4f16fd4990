import { errorCode } from "@rollcall/process";
import pg from "pg";
import { DATABASE_NAME } from "./data/data-directory.ts";
import type { Place } from "./place.ts";

/** How to reach the server that should be ours. */
export interface ServerAddress extends Place {
  readonly password: string;
  readonly dataDirectory: string;
}

/** What answers at a place. */
export type Answer =
  /** The server of this data directory: it took our password and says so itself. */
  | "ours"
  /** Something that is not. */
  | "foreign"
  /** A server that does not accept connections yet, or any longer. */
  | "not-ready"
  | "nothing";

const PROBE_TIMEOUT_MS = 5_000;

/** Ask whatever listens there for its data directory. */
export async function askServer(address: ServerAddress): Promise<Answer> {
  const client = createClient(address, "rollcall probe");
  // A server that ends in mid-probe also rejects the call below; without a listener it would end this process.
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

/** Whether the server at the other end runs on this data directory. */
export async function isOurs(client: pg.Client, dataDirectory: string): Promise<boolean> {
  const { rows } = await client.query<{ data_directory: string }>(
    "select current_setting('data_directory') as data_directory",
  );
  return rows[0]?.data_directory === dataDirectory;
}

/** A connection to the maintenance database, outside any pool. */
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
  // A socket is removed in an orderly end, and left behind in any other.
  if (code === "ECONNREFUSED" || code === "ENOENT") return "nothing";
  // Starting up, shutting down, recovering; or all its connections are taken; or those that wait for it at its socket
  // are too many.
  if (code === "57P03" || code === "57P01" || code === "53300" || code === "EAGAIN") {
    return "not-ready";
  }
  // Another password, another protocol, or an end in mid-sentence: none of it proves that it is ours.
  return "foreign";
}
