import { readFile, realpath, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DATABASE_NAME, dataDirectoryOf, dataVersion, MAJOR_VERSION } from "./data-directory.ts";
import { EmbeddedPostgresError } from "./errors.ts";
import { isErrno } from "./files.ts";
import { databaseUrl } from "./place.ts";
import { readPostmasterFile } from "./postmaster.ts";
import { askServer } from "./probe.ts";

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

/**
 * Move the data of another version of Postgres aside, so that the packaged one makes its own. The server must not run.
 * Where the old data is now; null, and nothing is done, when there is none or it is of this version.
 */
export async function setOldDataAside(dir: string): Promise<string | null> {
  const version = await dataVersion(dataDirectoryOf(dir));
  if (version === null || version === MAJOR_VERSION) return null;
  const target = join(dir, `data-${version}`);
  try {
    await rename(dataDirectoryOf(dir), target);
  } catch (cause) {
    if (!isErrno(cause, "ENOTEMPTY") && !isErrno(cause, "EEXIST")) throw cause;
    throw new EmbeddedPostgresError(`${target} is there already: move it away first`, { cause });
  }
  return target;
}

/** Undo setOldDataAside(): what the packaged Postgres has made meanwhile is removed. The server must not run. */
export async function putOldDataBack(dir: string, setAside: string): Promise<void> {
  await rm(dataDirectoryOf(dir), { recursive: true, force: true });
  await rename(setAside, dataDirectoryOf(dir));
}
