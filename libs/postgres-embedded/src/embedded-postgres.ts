import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, errorCode, type Logger, systemClock } from "@rollcall/process";
import {
  DATABASE_NAME,
  dataDirectoryOf,
  dataOwner,
  ensureDataDirectory,
  ensurePassword,
  prepareDirectory,
} from "./data/data-directory.ts";
import { refuseHalfRestored } from "./data/restore-mark.ts";
import { EmbeddedPostgresError } from "./errors.ts";
import { chooseListen } from "./listen.ts";
import { type Account, blockedFolder, foldersTo, openForPassage } from "./passage.ts";
import { databaseUrl } from "./place.ts";
import { readPostmasterFile } from "./postmaster.ts";
import { askServer } from "./probe.ts";
import { type Binaries, locateBinaries, programsFor } from "./programs.ts";
import { checkRunnable, chooseRunAs, namespacesWork, unprivilegedAccount } from "./run-as.ts";
import { Supervisor } from "./supervisor.ts";

export { EmbeddedPostgresError } from "./errors.ts";

/** How and where to run the packaged Postgres. */
export interface EmbeddedPostgresOptions {
  /** A dedicated directory for the data, password, port and log file. */
  readonly dir: string;
  readonly log: Logger;
  /**
   * Where the server listens. Default `socket`: a Unix socket in a directory that only this user can enter, or
   * `loopback` if sockets are not possible. On loopback, any user of the machine can connect, but needs the password.
   */
  readonly listen?: "socket" | "loopback";
  /** Required port on loopback. By default, a free port below 32768 is chosen once and remembered. */
  readonly port?: number;
  /**
   * A directory above `dir` that belongs to the caller. If the server runs as another user, that user must be able to
   * reach `dir`. Other users can then traverse this directory, but cannot list it.
   */
  readonly parent?: string;
  /** Server settings to add when the data directory is created, such as `{ fsync: "off" }` in tests. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Whether root runs the server as another user instead of in a user namespace, as on systems without namespaces. */
  readonly withoutNamespaces?: boolean;
  /**
   * Whether the start is part of a restore that beginRestore() began. Other starts are refused until the restore is
   * done.
   */
  readonly restoring?: boolean;
}

/** A running, supervised Postgres. */
export interface EmbeddedPostgres {
  /** The URL of the database `rollcall`, including the password. It stays the same across restarts. */
  readonly url: string;
  /** The directory of the server's socket, or 127.0.0.1. */
  readonly host: string;
  readonly dataDirectory: string;
  /** Whether this process adopted a server that an earlier supervisor left running. */
  readonly adopted: boolean;
  /** The postmaster's process id; null while the server is known to be down. */
  readonly pid: number | null;
  /** Shut down fast, and wait until the server has exited. */
  stop(): Promise<void>;
  /** Stop supervising the server, but leave it running for the next supervisor to adopt. */
  release(): Promise<void>;
}

/** Settings that are written to `postgresql.conf` when the data directory is created. */
const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: "200",
  shared_buffers: "128MB",
  // Turn the compiler off: the store's queries are small, so compiling them would cost more than running them.
  jit: "off",
  log_min_messages: "warning",
  // Do not log these events. Tests of failures lose many connections, and log lines about them add no information.
  log_checkpoints: "off",
};

/**
 * Start or adopt the packaged Postgres of a directory, and keep it running until `stop` or `release`. A server is
 * adopted only after it accepted this directory's password and reported this directory's data as its own.
 *
 * @throws EmbeddedPostgresError when the platform has no binary, the server cannot run, another process supervises it,
 *   or a restore into the directory was interrupted.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const installed = await locateBinaries(process.platform, process.arch);
  const dir = await prepareDirectory(options.dir);
  if (options.restoring !== true) await refuseHalfRestored(dir);
  const runAs = chooseRunAs({
    uid: process.getuid?.(),
    namespacesWork: options.withoutNamespaces !== true && namespacesWork(),
    dataOwnerUid: await dataOwner(dir),
    unprivileged: unprivilegedAccount(),
  });
  const binaries = runAs.kind === "user" ? await letIn(runAs, installed, dir, options) : installed;
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
    listen: await chooseListen({
      dir,
      runAs,
      log,
      listen: options.listen ?? "socket",
      port: options.port ?? null,
    }),
  });
  await supervisor.start();
  const account = { user: DATABASE_NAME, password, database: DATABASE_NAME };
  return {
    url: databaseUrl({ ...account, ...supervisor.place }),
    host: supervisor.place.host,
    dataDirectory,
    adopted: supervisor.adopted,
    get pid() {
      return supervisor.pid;
    },
    stop: () => supervisor.stop(),
    release: () => supervisor.release(),
  };
}

/**
 * Find the running server of a directory, whatever its version. Returns the server's URL; null when no server responds.
 */
export async function findEmbeddedPostgres(dir: string): Promise<string | null> {
  let password: string;
  let dataDirectory: string;
  try {
    dataDirectory = dataDirectoryOf(await realpath(dir));
    password = (await readFile(join(dir, "password"), "utf8")).trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
  const place = (await readPostmasterFile(dataDirectory))?.place ?? null;
  if (place === null || (await askServer({ ...place, password, dataDirectory })) !== "ours") return null;
  return databaseUrl({ user: DATABASE_NAME, password, database: DATABASE_NAME, ...place });
}

/** Make the directory and the programs accessible to another user. Returns the programs that this user can run. */
async function letIn(
  user: Account,
  installed: Binaries,
  dir: string,
  { parent }: Pick<EmbeddedPostgresOptions, "parent">,
): Promise<Binaries> {
  if (parent !== undefined) await openForPassage(parent);
  await openForPassage(dir);
  const blocked = blockedFolder(await foldersTo(dir), user);
  if (blocked !== null) {
    const mode = (blocked.mode & 0o777).toString(8).padStart(4, "0");
    throw new EmbeddedPostgresError(
      `Postgres does not run as root, and user ${user.uid}, which it runs as here, cannot enter ` +
        `${blocked.path} (mode ${mode}) on the way to ${dir}: choose a data directory elsewhere, such as ` +
        `/var/lib/rollcall, let other users pass with chmod o+x ${blocked.path}, or set DATABASE_URL`,
    );
  }
  return programsFor(installed, user, dir);
}
