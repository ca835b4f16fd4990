import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** Compiled code that is kept between runs of the command line, in files that this user alone may write. */
export interface CodeCache {
  /** What was kept under this name; undefined when nothing was, or another user could have written it. */
  read(name: string): Buffer | undefined;
  /** Keep something. What cannot be kept is not: every program runs without it. */
  write(name: string, code: Buffer): void;
}

/** Where the files are, and whose they have to be. */
export interface CodeCacheOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly userId: number;
  /** Files that are kept, the newest; one is about 1 MB. Default 8. */
  readonly most?: number;
}

const MOST_FILES = 8;
const MOST_BYTES = 16_777_216;
const SUFFIX = ".code";
/** Others than the owner may write. */
const OPEN_TO_OTHERS = 0o022;
const ROOT = 0;

/** The cache of a user: rollcall in XDG_CACHE_HOME, else in ~/.cache. */
export function createCodeCache({ env, home, userId, most = MOST_FILES }: CodeCacheOptions): CodeCache {
  // The standard says that a path that is not absolute is to be ignored.
  const named = env.XDG_CACHE_HOME?.startsWith("/") ? env.XDG_CACHE_HOME : undefined;
  const directory = join(named ?? join(home, ".cache"), "rollcall");
  const isOwn = (stats: { readonly uid: number; readonly mode: number }) =>
    stats.uid === userId && (stats.mode & OPEN_TO_OTHERS) === 0;
  const isOwnDirectory = () => {
    const stats = lstatSync(directory);
    return stats.isDirectory() && isOwn(stats);
  };
  // With the HOME of another user, as sudo may leave it, a directory that root made would be in that user's way.
  const isInPlace = () => {
    const { uid } = nearest(dirname(directory));
    return uid === userId || uid === ROOT;
  };
  return {
    read: (name) => {
      try {
        // Code that is run: nothing is read that another user could have put there.
        if (!isInPlace() || !isOwnDirectory()) return undefined;
        return readOwn(join(directory, name + SUFFIX), isOwn);
      } catch {
        return undefined;
      }
    },
    write: (name, code) => {
      try {
        if (!isInPlace()) return;
        mkdirSync(directory, { recursive: true, mode: 0o700 });
        if (!isOwnDirectory()) return;
        replace(join(directory, name + SUFFIX), code);
        discardOld(directory, most);
      } catch {
        // A home that is full, or read-only.
      }
    },
  };
}

/** Of a path, or of what is above it and there: the root of all always is. */
function nearest(path: string): { readonly uid: number } {
  return statSync(path, { throwIfNoEntry: false }) ?? nearest(dirname(path));
}

function readOwn(
  file: string,
  isOwn: (stats: { readonly uid: number; readonly mode: number }) => boolean,
): Buffer | undefined {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || !isOwn(stats) || stats.size > MOST_BYTES) return undefined;
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Others that start meanwhile read the old file or the new one, and never a part of it. */
function replace(file: string, code: Buffer): void {
  const draft = `${file}.${process.pid}`;
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeFileSync(descriptor, code);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
}

/** Keep the newest: those of other builds and of other releases of Node.js are never asked for again. */
function discardOld(directory: string, most: number): void {
  const files = readdirSync(directory)
    .filter((name) => name.includes(SUFFIX))
    .map((name) => ({ file: join(directory, name), atMs: statSync(join(directory, name)).mtimeMs }))
    .toSorted((left, right) => right.atMs - left.atMs);
  for (const { file } of files.slice(most)) rmSync(file, { force: true });
}
