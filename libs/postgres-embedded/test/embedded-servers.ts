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

/** The servers of one test file, each with a separate directory. */
export class EmbeddedServers {
  /** Servers that were started and not yet stopped. */
  readonly running: EmbeddedPostgres[] = [];
  #root: string | null = null;
  #directories = 0;

  /** Choose a path that does not exist yet. */
  async newDir(): Promise<string> {
    this.#root ??= await mkdtemp(join(await realpath(tmpdir()), "rollcall-embedded-"));
    this.#directories += 1;
    return join(this.#root, `${this.#directories}`);
  }

  /** Start a server; `stopAll` stops it. */
  async start(
    dir: string,
    options: Partial<Omit<EmbeddedPostgresOptions, "dir" | "log" | "settings">> = {},
  ): Promise<EmbeddedPostgres> {
    const fixed = { dir, log: silentLogger, settings: SETTINGS };
    const server = await startEmbeddedPostgres({ ...fixed, ...options });
    this.running.push(server);
    return server;
  }

  /** Stop all running servers. */
  async stopAll(): Promise<void> {
    await Promise.all(this.running.splice(0).map((server) => server.stop()));
  }

  /** Remove every directory. */
  async dispose(): Promise<void> {
    if (this.#root === null) return;
    await rm(this.#root, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** A connection for several statements. */
export interface Connection {
  rows(text: string): Promise<readonly Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** Open a connection. If it is lost, the next statement rejects. */
export async function openConnection(url: string): Promise<Connection> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return { rows: async (text) => (await client.query(text)).rows, close: () => client.end() };
}

/** Run a statement over a new connection. */
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

/** Open a connection for statements that must run in the same session. */
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
