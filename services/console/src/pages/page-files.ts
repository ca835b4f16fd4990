import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";

/** A file of the pages, as it is served. */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  /** The content, compressed at build time; null if compression saves nothing. */
  readonly brotli: Buffer | null;
  readonly gzip: Buffer | null;
  /** A digest of the content, in quotes. */
  readonly etag: string;
  /** Whether the name changes with the content, so that browsers can cache it forever. */
  readonly isImmutable: boolean;
}

/** The pages, in memory. */
export interface PageFiles {
  /** The document of every page, with NONCE_PLACEHOLDER where the nonce goes. */
  readonly index: string;
  /** Files, keyed by their path from the root: "/assets/index-abc123.js". */
  readonly files: ReadonlyMap<string, PageFile>;
}

/** Placeholder that each response replaces with its nonce. */
export const NONCE_PLACEHOLDER = "__CSP_NONCE__";

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".txt": "text/plain; charset=utf-8",
};

const MOST_FILES = 500;
const LARGEST_FILE_BYTES = 4_194_304;
const MOST_BYTES = 33_554_432;
const INDEX = "index.html";

/**
 * Read the built pages from a folder into memory; null when they were not built. Requests only look up this map and
 * never read files. Throws when the pages exceed their limits or contain an unexpected type of file.
 */
export async function readPageFiles(folder: string): Promise<PageFiles | null> {
  const names = await namesIn(folder);
  if (!names.includes(INDEX)) return null;
  if (names.length > MOST_FILES * 3) throw new Error(`${folder} has more than ${MOST_FILES} files`);
  const files = new Map<string, PageFile>();
  const whole = new Set(names);
  let bytes = 0;
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (name === INDEX || isCompressed(name, whole)) continue;
    if (type === undefined) throw new Error(`${join(folder, name)} has an unexpected file type`);
    const file = await readPageFile(folder, name, type, whole);
    bytes += file.body.length + (file.brotli?.length ?? 0) + (file.gzip?.length ?? 0);
    if (bytes > MOST_BYTES) throw new Error(`${folder} is larger than ${MOST_BYTES} bytes`);
    files.set(`/${name.split(sep).join("/")}`, file);
  }
  return { index: await readFile(join(folder, INDEX), "utf8"), files };
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  } catch (error) {
    if (Object(error).code === "ENOENT") return [];
    throw error;
  }
}

/** Whether a file is the compressed copy of another file. */
function isCompressed(name: string, whole: ReadonlySet<string>): boolean {
  const [, plain] = /^(.*)\.(?:br|gz)$/.exec(name) ?? [];
  return plain !== undefined && whole.has(plain);
}

async function readPageFile(folder: string, name: string, type: string, whole: ReadonlySet<string>): Promise<PageFile> {
  const path = join(folder, name);
  const { size } = await stat(path);
  if (size > LARGEST_FILE_BYTES) throw new Error(`${path} is larger than ${LARGEST_FILE_BYTES} bytes`);
  const body = await readFile(path);
  const also = (ending: string) => (whole.has(name + ending) ? readFile(path + ending) : null);
  return {
    type,
    body,
    brotli: await also(".br"),
    gzip: await also(".gz"),
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`,
    isImmutable: name.startsWith(`assets${sep}`),
  };
}
