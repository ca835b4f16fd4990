import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";

/** Names the directory of this run's Postgres, from the global setup to every worker. */
export const SERVER_DIR_VARIABLE = "ROLLCALL_TEST_POSTGRES_DIR";

/** Prefix of such directories in the system's directory for temporary files. */
export const SERVER_DIR_PREFIX = "rollcall-jest-";

/** Prefix of the directories of servers that are one test's own. */
export const DRILL_DIR_PREFIX = "rollcall-drill-";

/** Holds the URL of the maintenance database once the server is ready. */
export function urlFile(dir: string): string {
  return join(dir, "url");
}

/** Holds the id of the process that a directory belongs to: when that is gone, so may be the directory. */
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
    // Another server may have the port by now: only the one that names this directory is ours to stop.
    if (rows[0]?.dir !== join(dir, "data")) return;
    const [pid] = (await readFile(join(dir, "data", "postmaster.pid"), "utf8")).split("\n");
    // Immediate: what it would save is removed next.
    process.kill(Number(pid), "SIGQUIT");
    await ended;
  } catch {
    // It is down already, which is what was wanted.
  } finally {
    await client.end().catch(() => {});
  }
}
