import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError } from "../errors.ts";
import { isErrno, writeFileAtomically } from "../files.ts";
import { dataDirectoryOf, oldDataPlace, prepareDirectory } from "./data-directory.ts";

/** A restore into a directory that has begun. The server must not run when it ends, either way. */
export interface BegunRestore {
  /** Where data of an older Postgres was moved to; null where there was none. */
  readonly setAside: string | null;
  /** It is done: the directory may be used. */
  finish(): Promise<void>;
  /** It failed, and none of it is in the record: the older data is put back in its place. */
  undo(): Promise<void>;
}

/** What to restore, and over what. */
export interface RestoreWish {
  /** The archive's path, for the messages of later starts. */
  readonly archive: string;
  /** Whether data of another version of Postgres, or what is left of a restore before, makes room. */
  readonly replace: boolean;
}

interface Mark {
  readonly archive: string;
  readonly setAside: string | null;
}

/**
 * Begin a restore: note it in the directory, then move the data of another version of Postgres aside. From then on
 * the directory is refused to all others until the restore is done or undone, however this process ends.
 *
 * @throws EmbeddedPostgresError when an earlier restore was cut short and `replace` does not say that it goes, or the
 *   place for the older data is taken.
 */
export async function beginRestore(directory: string, { archive, replace }: RestoreWish): Promise<BegunRestore> {
  const dir = await prepareDirectory(directory);
  const earlier = await readMark(dir);
  if (earlier !== null && !replace) throw await cutShort(dir, earlier);
  const data = dataDirectoryOf(dir);
  // What an earlier restore has set aside stays the data of before: what is in its place is half of that restore.
  const kept = earlier?.setAside ?? null;
  const isAside = kept !== null && (await isThere(kept));
  const target = isAside ? kept : replace ? await oldDataPlace(dir) : null;
  if (target !== null && !isAside && (await isThere(target))) {
    throw new EmbeddedPostgresError(`${target} is there already: move it away first`);
  }
  await writeMark(dir, { archive, setAside: target });
  if (target !== null && !isAside) await rename(data, target);
  await sync(dir);
  const end = async () => {
    await rm(markOf(dir), { force: true });
    await sync(dir);
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
 * Refuse a directory in which a restore was cut short: what is there may be empty, or half of what was restored.
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
      `a restore of ${archive} was cut short: ${again}; or go back to the data of the older Postgres, which is in ` +
        `${setAside}: remove ${data}, move ${setAside} there, and remove ${markOf(dir)}`,
    );
  }
  return new EmbeddedPostgresError(
    `a restore of ${archive} was cut short, and the record is as it was before, or as the archive has it without the ` +
      `files of the data directory: ${again}; or remove ${markOf(dir)} to go on with what is there`,
  );
}

function markOf(dir: string): string {
  return join(dir, "restoring.json");
}

async function writeMark(dir: string, mark: Mark): Promise<void> {
  await writeFileAtomically(markOf(dir), `${JSON.stringify(mark)}\n`, 0o600);
  // On the disk before what it tells of.
  await sync(dir);
}

async function readMark(dir: string): Promise<Mark | null> {
  let text: string;
  try {
    text = await readFile(markOf(dir), "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
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
  return `${markOf(dir)} tells of a restore and cannot be read: restore again into another data directory`;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function sync(dir: string): Promise<void> {
  const handle = await open(dir, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
