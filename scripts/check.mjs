// Checks one file: the types of its package and of its package's tests, its format and lint rules, and the tests of its
// package that import it, all at the same time. Usage: node scripts/check.mjs FILE [--watch]
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = resolve(fileURLToPath(new URL("..", import.meta.url)));
const BIN = join(ROOT, "node_modules/.bin");

const [given, ...options] = process.argv.slice(2);
const file = given === undefined ? "" : relative(ROOT, resolve(given));
if (given === undefined || file.startsWith("..") || !existsSync(join(ROOT, file))) {
  const problem = given === undefined ? "no file is given" : `there is no ${given} here`;
  process.stderr.write(`make check FILE=PATH: ${problem}\n`);
  process.exit(2);
}

const folder = packageOf(file);
const jest = ["--findRelatedTests", file, "--passWithNoTests", "--testPathIgnorePatterns", `<rootDir>/(?!${folder}/)`];
if (options.includes("--watch")) {
  process.exitCode = await run("jest", ["--watch", ...jest]);
} else {
  const codes = await Promise.all([
    types(),
    run("biome", ["ci", "--no-errors-on-unmatched", file]),
    run("jest", [...jest, "--silent=false"]),
  ]);
  process.exitCode = Math.max(...codes);
}

/** The package's folder, as "libs/domain"; that of the file itself where it belongs to no package. */
function packageOf(path) {
  for (let at = dirname(path); at !== "."; at = dirname(at)) {
    if (existsSync(join(ROOT, at, "package.json"))) return at;
  }
  return dirname(path);
}

/** The sources of a package are a project; all tests are another, of which only those of the package are read here. */
async function types() {
  if (existsSync(join(ROOT, folder, "tsconfig.json"))) {
    const code = await run("tsc", ["-b", folder]);
    if (code !== 0) return code;
  }
  const cache = join(ROOT, "node_modules/.cache/rollcall-check");
  mkdirSync(cache, { recursive: true });
  const config = join(cache, `${folder.replaceAll("/", "-")}.json`);
  const include = [join(ROOT, folder, "**/*.test.ts")];
  writeFileSync(config, JSON.stringify({ extends: join(ROOT, "tsconfig.tests.json"), include, exclude: ["**/dist"] }));
  return run("tsc", ["-p", config]);
}

/** Run a program of the workspace; answers its exit code. */
function run(program, args) {
  return new Promise((done) => {
    spawn(join(BIN, program), args, { cwd: ROOT, stdio: "inherit" }).on("close", (code) => done(code ?? 1));
  });
}
