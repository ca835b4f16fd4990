// Build the console's pages in web/ into web/dist if their sources have changed. Runs `vite build`, and stores a
// compressed copy next to each file that compresses well, so that the server never compresses anything.

import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const HERE = dirname(fileURLToPath(import.meta.url));
const WORKSPACE = join(HERE, "../..");
const WEB = join(HERE, "web");
const DIST = join(WEB, "dist");
/** The file that records which sources web/dist was built from. */
const KNOWN_FILE = join(HERE, "node_modules/.cache/web-build.json");
/** Paths outside web/ from which the build of the pages reads. */
const ALSO = ["libs/api/src", "libs/domain/src", "libs/config/src", "libs/wire/src", "pnpm-lock.yaml"];
const NO_SOURCE = new Set(["dist", "node_modules"]);
const COMPRESSED = new Set([".js", ".css", ".svg", ".json", ".webmanifest", ".txt"]);
/** Minimum size of a file to compress. For smaller files, headers cost more than compression saves. */
const LEAST_BYTES = 512;
/** Limit for the compressed size of everything that index.html loads before the first paint. */
const MOST_FIRST_BYTES = 200 * 1024;
const LONGEST_BUILD_MS = 300_000;
/** The mode of the build: always production, regardless of the caller's environment. */
const MODE = "production";

/**
 * Build the pages if their sources have changed, and copy them into a folder. Returns the input files, relative to the
 * root of the workspace; null in a source tree without pages.
 */
export async function copyWeb(target) {
  const names = existsSync(WEB) ? await readdir(WEB) : [];
  if (!names.some((name) => /^vite\.config\.[cm]?[jt]s$/.test(name))) return null;
  const key = await sourcesKey();
  const known = await readKnown();
  if (isBuilt(known, key)) {
    await cp(DIST, target, { recursive: true });
    return known.inputs;
  }
  // Build in a separate draft folder, so that two concurrent builds do not see each other's partial output.
  const draft = join(WEB, `.dist-${randomUUID()}`);
  let inputs = [];
  try {
    // Run the build in a separate process, because vite changes the environment of its process.
    const words = [fileURLToPath(import.meta.url), draft];
    const { stdout } = await promisify(execFile)(process.execPath, words, {
      timeout: LONGEST_BUILD_MS,
      env: { ...process.env, NODE_ENV: MODE },
    });
    inputs = JSON.parse(stdout);
    await compressFiles(draft);
    await checkFiles(draft);
    await cp(draft, target, { recursive: true });
    // Keep a build that another process finished in the meantime, because a third process may be copying it.
    if (isBuilt(await readKnown(), key)) return inputs;
    await replaceDist(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  await mkdir(dirname(KNOWN_FILE), { recursive: true });
  await writeFile(KNOWN_FILE, JSON.stringify({ key, inputs }));
  return inputs;
}

/** Replace web/dist with a build. Another process may do this at the same time. */
async function replaceDist(draft) {
  const old = join(WEB, `.dist-${randomUUID()}`);
  const except = (code) => (error) => {
    if (error.code !== code) throw error;
  };
  await rename(DIST, old).catch(except("ENOENT"));
  await rename(draft, DIST).catch(except("ENOTEMPTY"));
  await rm(old, { recursive: true, force: true });
}

/** Whether web/dist is built from these sources. */
function isBuilt(known, key) {
  return known?.key === key && existsSync(join(DIST, "index.html"));
}

async function readKnown() {
  try {
    return JSON.parse(await readFile(KNOWN_FILE, "utf8"));
  } catch {
    // Build again, because there is no earlier build, or a build was interrupted.
    return null;
  }
}

/** Run vite, and return the files that it read. */
async function runVite(outDir) {
  const { resolve } = createRequire(join(WEB, "package.json"));
  const { build } = await import(pathToFileURL(resolve("vite")).href);
  const output = await build({ root: WEB, mode: MODE, logLevel: "error", build: { outDir, emptyOutDir: true } });
  const modules = output.output.flatMap(({ moduleIds = [] }) => moduleIds);
  const files = modules.map((id) => id.split("?", 1)[0]).filter((file) => isAbsolute(file) && existsSync(file));
  return [...new Set(files)].map((file) => relative(WORKSPACE, file)).sort();
}

async function compressFiles(folder) {
  for (const file of await filesIn(folder)) {
    if (!COMPRESSED.has(extname(file))) continue;
    const body = await readFile(file);
    if (body.length < LEAST_BYTES) continue;
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    const forms = {
      ".br": await promisify(brotliCompress)(body, { params }),
      ".gz": await promisify(gzip)(body, { level: 9 }),
    };
    for (const [ending, form] of Object.entries(forms)) {
      if (form.length < body.length) await writeFile(file + ending, form);
    }
  }
}

/** Reject builds whose first load is too large, and development builds. */
async function checkFiles(folder) {
  const page = await readFile(join(folder, "index.html"), "utf8");
  const loaded = [...page.matchAll(/(?:src|href)="\/([^"]+\.(?:js|css))"/g)].map(([, path]) => join(folder, path));
  let bytes = 0;
  for (const file of new Set(loaded)) bytes += (await stat(existsSync(`${file}.gz`) ? `${file}.gz` : file)).size;
  if (bytes === 0) throw new Error("index.html loads no script");
  if (bytes > MOST_FIRST_BYTES) throw new Error(`index.html loads ${bytes} bytes, ${MOST_FIRST_BYTES} at most`);
  for (const file of (await filesIn(folder)).filter((one) => one.endsWith(".js")))
    if ((await readFile(file, "utf8")).includes("jsxDEV")) throw new Error(`${file} is made for development`);
}

/** A digest of the names, sizes and modification times of the sources. */
async function sourcesKey() {
  const digest = createHash("sha256").update(`${MODE}\n`);
  for (const place of [WEB, ...ALSO.map((path) => join(WORKSPACE, path))]) {
    for (const file of await filesIn(place)) {
      const { size, mtimeMs } = await stat(file);
      digest.update(`${relative(WORKSPACE, file)} ${size} ${mtimeMs}\n`);
    }
  }
  return digest.digest("hex");
}

async function filesIn(place) {
  if ((await stat(place)).isFile()) return [place];
  const entries = await readdir(place, { withFileTypes: true });
  const nested = entries
    .filter(({ name }) => !NO_SOURCE.has(name) && !name.startsWith(".dist-"))
    .map((entry) => {
      const path = join(place, entry.name);
      return entry.isDirectory() ? filesIn(path) : [path];
    });
  return (await Promise.all(nested)).flat().sort();
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] !== undefined) {
  process.stdout.write(JSON.stringify(await runVite(process.argv[2])));
}
