import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Logger, silentLogger } from "@rollcall/runtime";
import { type EmbeddedPostgres, migrate, startEmbeddedPostgres } from "@rollcall/store";
import { TEST_SETTINGS } from "./shared-server.ts";

/** A kill must lose nothing that was committed; the machine itself never fails in a drill, so the disk need not have it. */
const DRILL_SETTINGS = { ...TEST_SETTINGS, synchronous_commit: "on" };

/** A Postgres of one test alone, to be stopped, killed and started as the test likes. */
export interface TestPostgres {
  /** Of a migrated database; the same over stops and starts. */
  readonly url: string;
  readonly dir: string;
  /** The server of the last start. */
  readonly server: EmbeddedPostgres;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** Start it again after `stop`. */
  start(): Promise<void>;
  /** Kill the postmaster; its supervisor brings it back. */
  kill(): void;
  /** End it and remove its directory. */
  drop(): Promise<void>;
}

/** Start a private, migrated Postgres for kill drills. */
export async function startTestPostgres(log: Logger = silentLogger): Promise<TestPostgres> {
  const dir = await mkdtemp(join(await realpath(tmpdir()), "rollcall-drill-"));
  const launch = () => startEmbeddedPostgres({ dir, log, settings: DRILL_SETTINGS });
  let server = await launch();
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
