import { lstatSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where a user's compiled code is, and which user that is. */
export interface CompiledCodeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly userId: number;
}

const ROOT = 0;
/** Permissions of users other than the owner to write. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * The directory for code that V8 has compiled of the command line: `rollcall` in XDG_CACHE_HOME, or else in ~/.cache.
 * The code is executed, so the directory must belong to this user, and no other user may write to it. Null when there
 * is no such directory and none can be created.
 */
export function compiledCodeDirectory({ env, home, userId }: CompiledCodeOptions): string | null {
  // The XDG specification says to ignore a path that is not absolute.
  const cacheHome = env.XDG_CACHE_HOME?.startsWith("/") ? env.XDG_CACHE_HOME : join(home, ".cache");
  const directory = join(cacheHome, "rollcall");
  try {
    // sudo may leave HOME as it was: root must not create directories there that the user cannot write to.
    const { uid: ownerAbove } = nearestExisting(cacheHome);
    if (ownerAbove !== userId && ownerAbove !== ROOT) return null;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const stats = lstatSync(directory);
    const isOwn = stats.isDirectory() && stats.uid === userId && (stats.mode & WRITABLE_BY_OTHERS) === 0;
    return isOwn ? directory : null;
  } catch {
    // The home is full, read-only, or missing: the code is compiled each time.
    return null;
  }
}

/** The status of a path, or of the nearest directory above it that exists. */
function nearestExisting(path: string): { readonly uid: number } {
  return statSync(path, { throwIfNoEntry: false }) ?? nearestExisting(dirname(path));
}
