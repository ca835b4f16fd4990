// Builds the console's pages in web/ into web/dist, when their sources have changed since: `vite build`, and beside each
// file that is worth it the same file compressed, since the server compresses nothing for each browser again.

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
/** Which sources web/dist was built from. */
const KNOWN_FILE = join(HERE, "node_modules/.cache/web-build.json");
/** What the pages are made of besides web/: whatever they import of the workspace. */
const ALSO = ["libs/api/src", "libs/domain/src", "pnpm-lock.yaml"];
const NO_SOURCE = new Set(["dist", "node_modules"]);
const COMPRESSED = new Set([".js", ".css", ".svg", ".json", ".webmanifest", ".txt"]);
/** Below, the headers weigh more than what is saved. */
const LEAST_BYTES = 512;
/** What index.html loads before anything is shown, compressed. */
const MOST_FIRST_BYTES = 200 * 1024;
const LONGEST_BUILD_MS = 300_000;
/** The pages are those of production, whatever the environment of the caller says. */
const MODE = "production";

/**
 * Build the pages if they are not those of the sources, and copy them into a folder. Returns the files that went into
 * them, from the root of the workspace; null in a tree that has no pages.
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
  // Two programs that build at the same time do not see each other's halves.
  const draft = join(WEB, `.dist-${randomUUID()}`);
  let inputs = [];
  try {
    // In a process of its own: vite changes the environment of the one that it runs in.
    const words = [fileURLToPath(import.meta.url), draft];
    const { stdout } = await promisify(execFile)(process.execPath, words, {
      timeout: LONGEST_BUILD_MS,
      env: { ...process.env, NODE_ENV: MODE },
    });
    inputs = JSON.parse(stdout);
    await compressFiles(draft);
    await checkFiles(draft);
    await cp(draft, target, { recursive: true });
    // Keep a build that another program has finished in the meantime: a third program may be copying it.
    if (isBuilt(await readKnown(), key)) return inputs;
    await replaceDist(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  await mkdir(dirname(KNOWN_FILE), { recursive: true });
  await writeFile(KNOWN_FILE, JSON.stringify({ key, inputs }));
  return inputs;
}

/** Put a build in the place of web/dist. Another program may put the same there in the meantime. */
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
    // Never built here, or by a build that was interrupted: it is built.
    return null;
  }
}

/** Run vite, and answer the files that it made the pages of. */
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

/** Refuse pages that load slowly at first, or that are those of development. */
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

/** A digest of what the sources are: their names, sizes and times. */
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
