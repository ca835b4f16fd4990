import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@rollcall/process";
import pg from "pg";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../src/embedded-postgres.ts";

const SETTINGS = { fsync: "off", shared_buffers: "16MB", max_connections: "60" };

/** The servers of one test file, each in a directory of its own. */
export class EmbeddedServers {
  /** Those that were started, until they are stopped. */
  readonly running: EmbeddedPostgres[] = [];
  #root: string | null = null;
  #directories = 0;

  /** A path at which nothing is yet. */
  async newDir(): Promise<string> {
    this.#root ??= await mkdtemp(join(await realpath(tmpdir()), "rollcall-embedded-"));
    this.#directories += 1;
    return join(this.#root, `${this.#directories}`);
  }

  /** Start a server that `stopAll` stops. */
  async start(
    dir: string,
    options: Partial<Omit<EmbeddedPostgresOptions, "dir" | "log" | "settings">> = {},
  ): Promise<EmbeddedPostgres> {
    const fixed = { dir, log: silentLogger, settings: SETTINGS };
    const server = await startEmbeddedPostgres({ ...fixed, ...options });
    this.running.push(server);
    return server;
  }

  /** Stop what runs. */
  async stopAll(): Promise<void> {
    await Promise.all(this.running.splice(0).map((server) => server.stop()));
  }

  /** Remove every directory. */
  async dispose(): Promise<void> {
    if (this.#root === null) return;
    await rm(this.#root, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** A connection for many statements. */
export interface Connection {
  rows(text: string): Promise<readonly Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** Open a connection. Its loss rejects the next statement. */
export async function openConnection(url: string): Promise<Connection> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return { rows: async (text) => (await client.query(text)).rows, close: () => client.end() };
}

/** Run a statement over a connection of its own. */
export async function query(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Open a connection for several statements, such as those between which a session must not end. */
export async function openSession(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** The port in a server's URL. */
export function portOf({ url }: EmbeddedPostgres): number {
  return Number(new URL(url).port);
}
