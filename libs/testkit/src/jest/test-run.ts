import { mkdtemp, readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DRILL_DIR_PREFIX, discardServer, ownerFile, SERVER_DIR_PREFIX, SERVER_DIR_VARIABLE } from "./test-server.ts";

/**
 * Create a directory for the run's Postgres. The first test that needs a database starts the server, so that other
 * runs do not pay for it.
 */
export async function beginRun(): Promise<void> {
  const parent = await realpath(tmpdir());
  await discardAbandoned(parent);
  const dir = await mkdtemp(join(parent, SERVER_DIR_PREFIX));
  await writeFile(ownerFile(dir), `${process.pid}`);
  process.env[SERVER_DIR_VARIABLE] = dir;
}

/** Stop the run's Postgres, if a test started it. */
export async function endRun(): Promise<void> {
  const dir = process.env[SERVER_DIR_VARIABLE];
  if (dir !== undefined) await discardServer(dir);
}

const PREFIXES = [SERVER_DIR_PREFIX, DRILL_DIR_PREFIX];

/** Stop and remove the servers of earlier runs that were killed. */
async function discardAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    const dir = join(parent, name);
    const owner = Number(await readFile(ownerFile(dir), "utf8").catch(() => ""));
    if (owner > 0 && !isAlive(owner)) await discardServer(dir);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { readonly code?: unknown }).code !== "ESRCH";
  }
}
