import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Logger, systemClock } from "@rollcall/process";
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
import { isErrno } from "./files.ts";
import { chooseListen } from "./listen.ts";
import { type Account, blockedFolder, foldersTo, openForPassage } from "./passage.ts";
import { databaseUrl } from "./place.ts";
import { readPostmasterFile } from "./postmaster.ts";
import { askServer } from "./probe.ts";
import { type Binaries, locateBinaries, programsFor } from "./programs.ts";
import { checkRunnable, chooseRunAs, namespacesWork, unprivilegedAccount } from "./run-as.ts";
import { Supervisor } from "./supervisor.ts";

export { EmbeddedPostgresError } from "./errors.ts";

/** Where and how to run the packaged Postgres. */
export interface EmbeddedPostgresOptions {
  /** A directory of its own: data, password, port and log file are kept in it. */
  readonly dir: string;
  readonly log: Logger;
  /**
   * Where it listens. Default `socket`: a Unix socket in a directory that only this user can enter, or `loopback` where
   * there can be none. On loopback every user of the machine can take up its connections, though none gets in without
   * the password.
   */
  readonly listen?: "socket" | "loopback";
  /** On loopback, insist on this port; by default a free one below 32768 is chosen once and remembered. */
  readonly port?: number;
  /**
   * A directory above `dir` that belongs to the caller alone. Where the server runs as another user, which has to get
   * through to `dir`, others are let through it; they can list neither.
   */
  readonly parent?: string;
  /** Server settings added when the data directory is made, such as `{ fsync: "off" }` in tests. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /**
   * When this process is root: run the server as another user rather than in a user namespace, as where there are none.
   */
  readonly withoutNamespaces?: boolean;
  /** Whether this is for a restore that was begun with beginRestore(); all others are refused until that is done. */
  readonly restoring?: boolean;
}

/** A running, supervised Postgres. */
export interface EmbeddedPostgres {
  /** Of the database `rollcall`, password included. Stays the same over restarts. */
  readonly url: string;
  /** The directory of its socket, or 127.0.0.1. */
  readonly host: string;
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
 * Start, or adopt, the packaged Postgres of a directory and keep it running until `stop` or `release`. A server is
 * adopted only after it took this directory's password and named this directory's data as its own.
 *
 * @throws EmbeddedPostgresError when the platform has no binary, the server cannot run, another process supervises it,
 *   or a restore into the directory was cut short.
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

/** Find the server of a directory that runs already, of whichever version. Its URL; null when none answers. */
export async function findEmbeddedPostgres(dir: string): Promise<string | null> {
  let password: string;
  let dataDirectory: string;
  try {
    dataDirectory = dataDirectoryOf(await realpath(dir));
    password = (await readFile(join(dir, "password"), "utf8")).trim();
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
  const place = (await readPostmasterFile(dataDirectory))?.place ?? null;
  if (place === null || (await askServer({ ...place, password, dataDirectory })) !== "ours") return null;
  return databaseUrl({ user: DATABASE_NAME, password, database: DATABASE_NAME, ...place });
}

/** Make the directory one that another user can get through to, with programs in reach. */
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
      `Postgres does not run as root, and user ${user.uid}, as which it runs here, cannot enter ` +
        `${blocked.path} (mode ${mode}) on the way to ${dir}: choose a data directory elsewhere, such as ` +
        `/var/lib/rollcall, let others pass with chmod o+x ${blocked.path}, or set DATABASE_URL`,
    );
  }
  return programsFor(installed, user, dir);
}
