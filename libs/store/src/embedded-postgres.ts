import { type Clock, type Logger, systemClock } from "@rollcall/runtime";
import { locateBinaries } from "./embedded/binaries.ts";
import {
  DATABASE_NAME,
  dataDirectoryOf,
  dataOwner,
  ensureDataDirectory,
  ensurePassword,
  prepareDirectory,
} from "./embedded/data-directory.ts";
import { rememberedPort } from "./embedded/ports.ts";
import {
  checkRunnable,
  chooseRunAs,
  namespacesWork,
  unprivilegedAccount,
} from "./embedded/run-as.ts";
import { Supervisor } from "./embedded/supervisor.ts";

export { EmbeddedPostgresError } from "./embedded/errors.ts";

/** Where and how to run the packaged Postgres. */
export interface EmbeddedPostgresOptions {
  /** A directory of its own: data, password, port and log file are kept in it. */
  readonly dir: string;
  readonly log: Logger;
  /** Insist on this port; by default a free one below 32768 is chosen once and remembered. */
  readonly port?: number;
  /** Server settings added when the data directory is made, such as `{ fsync: "off" }` in tests. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** When this process is root: run the server as another user rather than in a user namespace, as where there are none. */
  readonly withoutNamespaces?: boolean;
}

/** A running, supervised Postgres. */
export interface EmbeddedPostgres {
  /** Of the database `rollcall`, password included. Stays the same over restarts. */
  readonly url: string;
  readonly port: number;
  readonly dataDirectory: string;
  /** Whether a server that an earlier supervisor left behind was taken over. */
  readonly adopted: boolean;
  /** Process id of the postmaster; null while it is known to be down. */
  readonly pid: number | null;
  /** Fast shutdown: waits for the server to end. */
  stop(): Promise<void>;
  /** Stop supervising but leave the server running, for the next supervisor to adopt. */
  release(): Promise<void>;
}

/** Written to `postgresql.conf` when the data directory is made. */
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "200",
  shared_buffers: "128MB",
  // The record's queries are small: compiling them costs more than running them.
  jit: "off",
  log_min_messages: "warning",
  // A reason for each lost connection would be one line for every kill drill, and tells nothing.
  log_checkpoints: "off",
};

/**
 * Start, or adopt, the packaged Postgres of a directory and keep it running until `stop` or `release`. A server is adopted
 * only after it took this directory's password and named this directory's data as its own.
 *
 * @throws EmbeddedPostgresError when the platform has no binary, the server cannot run, or another process supervises it.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log } = options;
  const binaries = await locateBinaries(process.platform, process.arch);
  const dir = await prepareDirectory(options.dir);
  const runAs = chooseRunAs({
    uid: process.getuid?.(),
    namespacesWork: options.withoutNamespaces !== true && namespacesWork(),
    dataOwnerUid: await dataOwner(dir),
    unprivileged: unprivilegedAccount(),
  });
  checkRunnable(binaries, runAs);
  const password = await ensurePassword(dir);
  const settings = { ...DEFAULT_SETTINGS, ...options.settings };
  await ensureDataDirectory({ dir, binaries, runAs, password, settings });
  const dataDirectory = dataDirectoryOf(dir);
  const supervisor = new Supervisor({
    dir,
    dataDirectory,
    password,
    binaries,
    runAs,
    log,
    clock: options.clock ?? systemClock,
    port: options.port ?? null,
    rememberedPort: await rememberedPort(dir),
  });
  await supervisor.start();
  return {
    url: `postgres://${DATABASE_NAME}:${password}@127.0.0.1:${supervisor.port}/${DATABASE_NAME}`,
    port: supervisor.port,
    dataDirectory,
    adopted: supervisor.adopted,
    get pid() {
      return supervisor.pid;
    },
    stop: () => supervisor.stop(),
    release: () => supervisor.release(),
  };
}
