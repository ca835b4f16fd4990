import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../libs/postgres-embedded/src/index.ts";
import { silentLogger } from "../../../libs/process/src/index.ts";

/** A packaged Postgres for one test, on a port of the loopback interface. */
export interface PrivatePostgres {
  readonly server: EmbeddedPostgres;
  /** The data directory, which no other test uses. */
  readonly dir: string;
  drop(): Promise<void>;
}

/** Start a Postgres. Its data does not survive a crash of the machine. */
export async function startPrivatePostgres(settings: Readonly<Record<string, string>> = {}): Promise<PrivatePostgres> {
  const root = await mkdtemp(join(await realpath(tmpdir()), "rollcall-postgres-"));
  const dir = join(root, "postgres");
  const server = await startEmbeddedPostgres({
    ...{ dir, log: silentLogger, listen: "loopback", parent: root },
    settings: { fsync: "off", shared_buffers: "32MB", ...settings },
  });
  return {
    server,
    dir,
    drop: async () => {
      await server.stop();
      await rm(root, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
