import { chmod, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** The attributes of a folder that determine who can enter it. */
export interface Folder {
  readonly path: string;
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** An account without supplementary groups. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The first folder, from the root, that a user cannot enter; null when the user can enter
 * all of them.
 */
export function blockedFolder(folders: readonly Folder[], user: Account): Folder | null {
  return folders.find((folder) => (folder.mode & entryBit(folder, user)) === 0) ?? null;
}

/** The folders that must be traversed to reach a folder's content, from the root. */
export async function foldersTo(folder: string): Promise<readonly Folder[]> {
  const paths: string[] = [];
  for (let at = await realpath(folder); ; at = dirname(at)) {
    paths.unshift(at);
    if (dirname(at) === at) break;
  }
  return Promise.all(
    paths.map(async (at) => {
      const { uid, gid, mode } = await stat(at);
      return { path: at, uid, gid, mode };
    }),
  );
}

/** Let other users traverse one of Rollcall's folders, but not list it. */
export async function openForPassage(path: string): Promise<void> {
  const { mode } = await stat(path);
  await chmod(path, (mode & 0o7777) | 0o011);
}

function entryBit(folder: Folder, user: Account): number {
  if (folder.uid === user.uid) return 0o100;
  return folder.gid === user.gid ? 0o010 : 0o001;
}
