import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "@rollcall/postgres-embedded";
import { type Logger, silentLogger } from "@rollcall/process";
import { migrate } from "@rollcall/store";
import { DRILL_DIR_PREFIX, ownerFile, urlFile } from "./jest/test-server.ts";
import { TEST_SETTINGS, withDatabase } from "./shared-server.ts";

/**
 * Postgres settings for drills. Killing the server must not lose committed data. The machine itself never fails
 * in a drill, so the data need not reach the disk.
 */
const DRILL_SETTINGS = { ...TEST_SETTINGS, synchronous_commit: "on" };

/** A separate Postgres for a single test. The test can stop, kill and start it. */
export interface TestPostgres {
  /** The URL of a migrated database. It stays the same across restarts. */
  readonly url: string;
  readonly dir: string;
  /** The server since the last start. */
  readonly server: EmbeddedPostgres;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** Start the server again after `stop`. */
  start(): Promise<void>;
  /** Kill the postmaster; its supervisor restarts it. */
  kill(): void;
  /** Stop the server and remove its directory. */
  drop(): Promise<void>;
}

/** Start a private, migrated Postgres for kill drills. */
export async function startTestPostgres(log: Logger = silentLogger): Promise<TestPostgres> {
  const dir = await mkdtemp(join(await realpath(tmpdir()), DRILL_DIR_PREFIX));
  await writeFile(ownerFile(dir), `${process.pid}`);
  const launch = () => startEmbeddedPostgres({ dir, log, settings: DRILL_SETTINGS });
  let server = await launch();
  await writeFile(urlFile(dir), withDatabase(server.url, "postgres"), { mode: 0o600 });
  await migrate(server.url, log);
  return {
    url: server.url,
    dir,
    get server() {
      return server;
    },
    stop: () => server.stop(),
    start: async () => {
      server = await launch();
    },
    kill: () => {
      if (server.pid !== null) process.kill(server.pid, "SIGKILL");
    },
    drop: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
