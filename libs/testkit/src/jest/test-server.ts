import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

/** The variable that passes the directory of this run's Postgres from the global setup to every worker. */
export const SERVER_DIR_VARIABLE = "ROLLCALL_TEST_POSTGRES_DIR";

/** Prefix of the directories of runs, in the system's directory for temporary files. */
export const SERVER_DIR_PREFIX = "rollcall-jest-";

/** Prefix of the directories of servers that belong to a single test. */
export const DRILL_DIR_PREFIX = "rollcall-drill-";

/** The path of the file that contains the URL of the maintenance database once the server is ready. */
export function urlFile(dir: string): string {
  return join(dir, "url");
}

/**
 * The path of the file with the id of the process that owns a directory. When that process is gone, the directory can
 * be removed.
 */
export function ownerFile(dir: string): string {
  return join(dir, "owner");
}

/** Stop a run's server, if one was started, and remove its directory. */
export async function discardServer(dir: string): Promise<void> {
  const url = await readFile(urlFile(dir), "utf8").catch(() => null);
  if (url !== null) await stopServer(dir, url);
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}

async function stopServer(dir: string, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  const ended = new Promise<void>((resolve) => {
    client.once("end", resolve);
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ dir: string }>("select current_setting('data_directory') as dir");
    // Stop the server only if it uses this directory, because another server may use the port now.
    if (rows[0]?.dir !== join(dir, "data")) return;
    const [pid] = (await readFile(join(dir, "data", "postmaster.pid"), "utf8")).split("\n");
    // Shut down immediately, without saving files that are removed next.
    process.kill(Number(pid), "SIGQUIT");
    await ended;
  } catch {
    // Ignore the error, because the server is already down.
  } finally {
    await client.end().catch(() => {});
  }
}
