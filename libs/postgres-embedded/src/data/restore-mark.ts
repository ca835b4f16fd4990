import { readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, replaceFile, syncDirectory } from "@rollcall/process";
import { EmbeddedPostgresError } from "../errors.ts";
import { dataDirectoryOf, oldDataPlace, prepareDirectory } from "./data-directory.ts";

/** A restore in progress. The server must not be running when the restore is finished or undone. */
export interface BegunRestore {
  /** The path that data of an older Postgres was moved to; null when there was no such data. */
  readonly setAside: string | null;
  /** Mark the restore as done, so that the directory can be used. */
  finish(): Promise<void>;
  /** Undo a failed restore that has not written to the store, by moving the older data back. */
  undo(): Promise<void>;
}

/** The archive to restore, and what the restore may replace. */
export interface RestoreWish {
  /** The archive's path, for the error messages of later starts. */
  readonly archive: string;
  /** Whether to replace the data of another Postgres version or of an interrupted restore. */
  readonly replace: boolean;
}

interface Mark {
  readonly archive: string;
  readonly setAside: string | null;
}

/**
 * Begin a restore: mark the directory, then move the data of another Postgres version aside. Until the restore is
 * finished or undone, no other start can use the directory, even if this process crashes.
 *
 * @throws EmbeddedPostgresError when an earlier restore was interrupted and `replace` is not set, or when the path for
 *   the older data is taken.
 */
export async function beginRestore(directory: string, { archive, replace }: RestoreWish): Promise<BegunRestore> {
  const dir = await prepareDirectory(directory);
  const earlier = await readMark(dir);
  if (earlier !== null && !replace) throw await cutShort(dir, earlier);
  const data = dataDirectoryOf(dir);
  // Keep the data that an earlier restore moved aside, because the data directory contains only what that unfinished
  // restore wrote.
  const kept = earlier?.setAside ?? null;
  const isAside = kept !== null && (await isThere(kept));
  const target = isAside ? kept : replace ? await oldDataPlace(dir) : null;
  if (target !== null && !isAside && (await isThere(target))) {
    throw new EmbeddedPostgresError(`${target} already exists: move it away first`);
  }
  await writeMark(dir, { archive, setAside: target });
  if (target !== null && !isAside) await rename(data, target);
  await syncDirectory(dir);
  const end = async () => {
    await rm(markOf(dir), { force: true });
    await syncDirectory(dir);
  };
  return {
    setAside: target,
    finish: end,
    undo: async () => {
      if (target !== null) {
        await rm(data, { recursive: true, force: true });
        await rename(target, data);
      }
      await end();
    },
  };
}

/**
 * Refuse a directory with an interrupted restore, because its data may be missing or incomplete.
 *
 * @throws EmbeddedPostgresError that says what happened and what to do.
 */
export async function refuseHalfRestored(dir: string): Promise<void> {
  const mark = await readMark(dir);
  if (mark !== null) throw await cutShort(dir, mark);
}

async function cutShort(dir: string, { archive, setAside }: Mark): Promise<EmbeddedPostgresError> {
  const again = `run \`rollcall restore ${archive} --replace\` on this data directory again`;
  if (setAside !== null && (await isThere(setAside))) {
    const data = dataDirectoryOf(dir);
    return new EmbeddedPostgresError(
      `a restore of ${archive} was interrupted: ${again}; or go back to the data of the older Postgres in ` +
        `${setAside}: remove ${data}, move ${setAside} there, and remove ${markOf(dir)}`,
    );
  }
  return new EmbeddedPostgresError(
    `a restore of ${archive} was interrupted; the store is either unchanged or restored without the files of the ` +
      `data directory: ${again}; or remove ${markOf(dir)} to continue with the current data`,
  );
}

function markOf(dir: string): string {
  return join(dir, "restoring.json");
}

async function writeMark(dir: string, mark: Mark): Promise<void> {
  await replaceFile(markOf(dir), `${JSON.stringify(mark)}\n`, 0o600);
}

async function readMark(dir: string): Promise<Mark | null> {
  let text: string;
  try {
    text = await readFile(markOf(dir), "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
  try {
    const { archive, setAside } = Object(JSON.parse(text));
    if (typeof archive === "string" && (setAside === null || typeof setAside === "string")) {
      return { archive, setAside };
    }
  } catch (cause) {
    throw new EmbeddedPostgresError(unreadable(dir), { cause });
  }
  throw new EmbeddedPostgresError(unreadable(dir));
}

function unreadable(dir: string): string {
  return `${markOf(dir)} marks an interrupted restore and cannot be read: restore into another data directory`;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
