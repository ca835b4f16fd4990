import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startEmbeddedPostgres } from "@rollcall/postgres-embedded";
import { silentLogger } from "@rollcall/process";
import { migrate } from "@rollcall/store";
import pg from "pg";
import { SERVER_DIR_VARIABLE, urlFile } from "./jest/test-server.ts";

/** The migrated database that tests clone. */
export const TEMPLATE_DATABASE = "rollcall_template";

/** Postgres settings for tests. No data outlives a run, so nothing has to reach the disk. */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  fsync: "off",
  full_page_writes: "off",
  synchronous_commit: "off",
  shared_buffers: "64MB",
  max_connections: "300",
};

const WAIT_DEADLINE_MS = 120_000;
const WAIT_POLL_MS = 50;

/**
 * Get the URL of the maintenance database of the run's server. The first worker that calls this starts
 * the server.
 */
export async function sharedServerUrl(): Promise<string> {
  const dir = process.env[SERVER_DIR_VARIABLE];
  if (dir === undefined) {
    throw new Error(
      `${SERVER_DIR_VARIABLE} is not set: jest.config.js must name libs/testkit/src/jest/global-setup.js`,
    );
  }
  if (await claimStart(dir)) {
    try {
      await startServer(dir);
    } catch (error) {
      await publish(join(dir, "failure"), String(error));
      throw error;
    }
  }
  return waitForUrl(dir);
}

/** Return a URL with the same server and credentials, but another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}

/** Run one statement over a separate connection. */
export async function runStatement(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Claim the start of the server. Returns true in exactly one process of the run. */
async function claimStart(dir: string): Promise<boolean> {
  try {
    await writeFile(join(dir, "starter"), `${process.pid}`, { flag: "wx" });
    return true;
  } catch {
    return false;
  }
}

async function startServer(dir: string): Promise<void> {
  const server = await startEmbeddedPostgres({ dir, log: silentLogger, settings: TEST_SETTINGS });
  const url = withDatabase(server.url, "postgres");
  await runStatement(url, `create database ${TEMPLATE_DATABASE}`);
  await migrate(withDatabase(url, TEMPLATE_DATABASE), silentLogger);
  // Leave the server running, because this worker may end long before the run does. The global teardown
  // stops the server.
  await server.release();
  await publish(urlFile(dir), url);
}

async function waitForUrl(dir: string): Promise<string> {
  const deadlineMs = performance.now() + WAIT_DEADLINE_MS;
  while (performance.now() < deadlineMs) {
    const url = await readIfThere(urlFile(dir));
    if (url !== null) return url;
    const failure = await readIfThere(join(dir, "failure"));
    if (failure !== null) throw new Error(`the run's Postgres did not start: ${failure}`);
    await pause(WAIT_POLL_MS);
  }
  throw new Error("the run's Postgres did not start in time");
}

/** Write a file so that readers see either the whole file or none. */
async function publish(path: string, content: string): Promise<void> {
  await writeFile(`${path}.draft`, content, { mode: 0o600 });
  await rename(`${path}.draft`, path);
}

function readIfThere(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(() => null);
}
