import { lstatSync, mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

export interface CompiledCodeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly userId: number;
}

const ROOT = 0;
/** Write permissions of users other than the owner. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * The directory for V8's compiled code of the command line: `rollcall` in XDG_CACHE_HOME, or in ~/.cache. The code is
 * executed, so the directory must belong to this user, and no other user may have write permission. Null when there
 * is no such directory and none can be created.
 */
export function compiledCodeDirectory({ env, home, userId }: CompiledCodeOptions): string | null {
  // Ignore a relative path, as the XDG specification requires.
  const cacheHome = env.XDG_CACHE_HOME?.startsWith("/") ? env.XDG_CACHE_HOME : join(home, ".cache");
  const directory = join(cacheHome, "rollcall");
  try {
    // Check who owns the nearest existing directory. sudo may keep the user's HOME, and root must not create
    // directories in it that the user cannot write to.
    const { uid: ownerAbove } = nearestExisting(cacheHome);
    if (ownerAbove !== userId && ownerAbove !== ROOT) return null;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const stats = lstatSync(directory);
    const isOwn = stats.isDirectory() && stats.uid === userId && (stats.mode & WRITABLE_BY_OTHERS) === 0;
    return isOwn ? directory : null;
  } catch {
    // Compile the code each time if the disk is full, or the home directory is read-only or missing.
    return null;
  }
}

/** The status of a path, or of the nearest directory above it that exists. */
function nearestExisting(path: string): { readonly uid: number } {
  return statSync(path, { throwIfNoEntry: false }) ?? nearestExisting(dirname(path));
}
