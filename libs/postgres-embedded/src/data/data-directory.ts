import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { chown, mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createFile, errorCode, makeDirectory } from "@rollcall/process";
import { EmbeddedPostgresError } from "../errors.ts";
import type { Binaries } from "../programs.ts";
import { commandAs, type RunAs } from "../run-as.ts";

/** The name of the superuser, and also of the store's database. */
export const DATABASE_NAME = "rollcall";

/** The major version of the packaged binaries. */
const MAJOR_VERSION = "18";

/** Create the directory (mode 0700) if it does not exist. Returns its real path. */
export async function prepareDirectory(dir: string): Promise<string> {
  await makeDirectory(dir, 0o700);
  return realpath(dir);
}

/**
 * Get the server's password. It is generated on first use, and stored in a file that only the file's owner can read.
 */
export async function ensurePassword(dir: string): Promise<string> {
  const path = join(dir, "password");
  // When several first starts race, one creates the file, and all of them read it.
  await createFile(path, `${randomBytes(24).toString("base64url")}\n`, 0o600).catch((error: unknown) => {
    // Another process has just created it.
    if (errorCode(error) !== "EEXIST") throw error;
  });
  const password = (await readFile(path, "utf8")).trim();
  if (password === "") {
    throw new EmbeddedPostgresError(`${path} is empty: restore it, or remove ${dir} to start over`);
  }
  return password;
}

/** The path of the server's data within a directory. */
export function dataDirectoryOf(dir: string): string {
  return join(dir, "data");
}

/** The uid of the data directory's owner; null before the directory exists. */
export async function dataOwner(dir: string): Promise<number | null> {
  try {
    return (await stat(dataDirectoryOf(dir))).uid;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

export interface InitOptions {
  readonly dir: string;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly password: string;
  /** Settings for `postgresql.conf`. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Create the data directory if it does not exist. The directory is created under a temporary name and then renamed, so
 * that a crash or a concurrent start never leaves a partial one.
 *
 * @throws EmbeddedPostgresError when initdb fails, or the data is from another major version of Postgres.
 */
export async function ensureDataDirectory(options: InitOptions): Promise<void> {
  const target = dataDirectoryOf(options.dir);
  if (await isInitialised(target)) return;
  const draft = join(options.dir, `init-${randomUUID()}`);
  try {
    await initialise(draft, options);
    await rename(join(draft, "data"), target);
  } catch (error) {
    // Another process created the directory first. Use that directory, because it has the same password.
    if (errorCode(error) !== "ENOTEMPTY" && errorCode(error) !== "EEXIST") throw error;
    await isInitialised(target);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * When a new directory is created, data of another Postgres version is moved to this path; null when there is no such
 * data.
 */
export async function oldDataPlace(dir: string): Promise<string | null> {
  const version = await dataVersion(dataDirectoryOf(dir));
  return version === null || version === MAJOR_VERSION ? null : join(dir, `data-${version}`);
}

/** The major version of Postgres that created a data directory; null when the directory does not exist. */
async function dataVersion(target: string): Promise<string | null> {
  try {
    return (await readFile(join(target, "PG_VERSION"), "utf8")).trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
}

async function isInitialised(target: string): Promise<boolean> {
  const version = await dataVersion(target);
  if (version === null) return false;
  if (version === MAJOR_VERSION) return true;
  throw new EmbeddedPostgresError(
    `${target} was created by Postgres ${version}, but the packaged version is ${MAJOR_VERSION}: back it up with the ` +
      "release of Rollcall that created it (`rollcall backup`), then `rollcall restore --replace` with this one",
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
    // If the server runs without durability, do not sync during setup either.
    ...(options.settings.fsync === "off" ? ["--no-sync"] : []),
    ...Object.entries(options.settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]),
  ]);
  try {
    await promisify(execFile)(command, [...args], { ...user });
  } catch (cause) {
    const detail = typeof cause === "object" && cause !== null && "stderr" in cause ? String(cause.stderr).trim() : "";
    throw new EmbeddedPostgresError(`initdb could not create ${options.dir}/data: ${detail}`, {
      cause,
    });
  }
}
