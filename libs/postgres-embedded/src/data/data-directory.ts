import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { chown, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeDirectory } from "@rollcall/process";
import { EmbeddedPostgresError } from "../errors.ts";
import { createFileAtomically, isErrno } from "../files.ts";
import type { Binaries } from "../programs.ts";
import { commandAs, type RunAs } from "../run-as.ts";

/** The superuser, and the database that is made for the record. */
export const DATABASE_NAME = "rollcall";

/** The version of the packaged binaries. */
const MAJOR_VERSION = "18";

/** Make the directory (mode 0700) unless it is there; its real path. */
export async function prepareDirectory(dir: string): Promise<string> {
  await makeDirectory(dir, 0o700);
  return realpath(dir);
}

/** The server's password, made on first use and kept in a file that only its owner can read. */
export async function ensurePassword(dir: string): Promise<string> {
  const path = join(dir, "password");
  // Of several first starts at once one wins, and all read what it wrote.
  await createFileAtomically(path, `${randomBytes(24).toString("base64url")}\n`, 0o600);
  const password = (await readFile(path, "utf8")).trim();
  if (password === "") {
    throw new EmbeddedPostgresError(`${path} is empty: restore it, or remove ${dir} to start again`);
  }
  return password;
}

/** Where the data of a directory's server is. */
export function dataDirectoryOf(dir: string): string {
  return join(dir, "data");
}

/** Who owns the data directory; null when there is none yet. */
export async function dataOwner(dir: string): Promise<number | null> {
  try {
    return (await stat(dataDirectoryOf(dir))).uid;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

/** What is needed to make a data directory. */
export interface InitOptions {
  readonly dir: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly password: string;
  /** Settings for `postgresql.conf`. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Make the data directory unless it is there. It is made aside and renamed, so that a crash, or another start at the
 * same time, never leaves half of one.
 *
 * @throws EmbeddedPostgresError when initdb fails, or the data is of another version of Postgres.
 */
export async function ensureDataDirectory(options: InitOptions): Promise<void> {
  const target = dataDirectoryOf(options.dir);
  if (await isInitialised(target)) return;
  const draft = join(options.dir, `init-${randomUUID()}`);
  try {
    await initialise(draft, options);
    await rename(join(draft, "data"), target);
  } catch (error) {
    // Another process was faster. Its file is as good, since the password is the same.
    if (!isErrno(error, "ENOTEMPTY") && !isErrno(error, "EEXIST")) throw error;
    await isInitialised(target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Where the data of another version of Postgres is kept while this one's is made; null when there is none. */
export async function oldDataPlace(dir: string): Promise<string | null> {
  const version = await dataVersion(dataDirectoryOf(dir));
  return version === null || version === MAJOR_VERSION ? null : join(dir, `data-${version}`);
}

/** The major version of Postgres that made a data directory; null when there is none. */
async function dataVersion(target: string): Promise<string | null> {
  try {
    return (await readFile(join(target, "PG_VERSION"), "utf8")).trim();
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

async function isInitialised(target: string): Promise<boolean> {
  const version = await dataVersion(target);
  if (version === null) return false;
  if (version === MAJOR_VERSION) return true;
  throw new EmbeddedPostgresError(
    `${target} was made by Postgres ${version}, and the packaged one is ${MAJOR_VERSION}: back it up with the ` +
      "release of Rollcall that made it (`rollcall backup`), then `rollcall restore --replace` with this one",
  );
}

async function initialise(draft: string, options: InitOptions): Promise<void> {
  const { runAs, password, binaries } = options;
  const passwordFile = join(draft, "password");
  await mkdir(draft, { mode: 0o700 });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (runAs.kind === "user") {
    await chown(passwordFile, runAs.uid, runAs.gid);
    await chown(draft, runAs.uid, runAs.gid);
  }
  const {
    command,
    args,
    options: user,
  } = commandAs(runAs, binaries.initdb, [
    `--pgdata=${join(draft, "data")}`,
    `--username=${DATABASE_NAME}`,
    `--pwfile=${passwordFile}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--no-instructions",
    // A server that runs without durability needs none while it is set up.
    ...(options.settings.fsync === "off" ? ["--no-sync"] : []),
    ...Object.entries(options.settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]),
  ]);
  try {
    await promisify(execFile)(command, [...args], { ...user });
  } catch (cause) {
    const detail = typeof cause === "object" && cause !== null && "stderr" in cause ? String(cause.stderr).trim() : "";
    throw new EmbeddedPostgresError(`initdb could not make ${options.dir}/data: ${detail}`, {
      cause,
    });
  }
}
