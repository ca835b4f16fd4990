// Checks one file. At the same time, it checks the file's format and lint rules, checks the types of its package and
// of the package's tests, and runs the nearest tests of its package that import it. For a schema, it only runs buf.
// Usage: node scripts/check.mjs FILE [--watch]
import { execFile, spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = resolve(fileURLToPath(new URL("..", import.meta.url)));
const BIN = join(ROOT, "node_modules/.bin");

const SCRIPT = /\.[cm]?[jt]sx?$/;
const TYPED = /\.[cm]?tsx?$/;
/** The maximum number of test files to run. More would take too long; `make test` runs all of them. */
const MOST_TESTS = 10;

const [given, ...options] = process.argv.slice(2);
const file = given === undefined ? "" : relative(ROOT, resolve(given));
const problem = problemOf(given);
if (problem !== null) {
  process.stderr.write(`make check FILE=PATH: ${problem}\n`);
  process.exit(2);
}

const folder = packageOf(file);
// Run only tests of the same package, because all tests that depend on a file of the domain take minutes.
const ignored = folder === "." ? "/" : `<rootDir>/(?!${folder}/)`;
const related = ["--findRelatedTests", file, "--passWithNoTests", "--testPathIgnorePatterns", ignored];
if (options.includes("--watch")) {
  process.exitCode = await run("jest", ["--watch", ...related]);
} else {
  process.exitCode = Math.max(...(await Promise.all(checks())));
}

/** Return why the argument is invalid; null if it is valid. */
function problemOf(path) {
  if (path === undefined) return "no file given";
  if (file.startsWith("..")) return `${path} is not in this checkout`;
  const stats = statSync(join(ROOT, file), { throwIfNoEntry: false });
  if (stats === undefined) return `${path} does not exist`;
  return stats.isFile() ? null : `${path} is not a file`;
}

function checks() {
  if (file.endsWith(".proto")) {
    return [run("buf", ["lint", "--path", file]), run("buf", ["format", "--diff", "--exit-code", file])];
  }
  const lint = run("biome", ["ci", "--no-errors-on-unmatched", file]);
  return SCRIPT.test(file) ? [lint, types(), tests()] : [lint];
}

/** Run the tests that import the file, or only the nearest of them if there are many. */
async function tests() {
  const { stdout } = await promisify(execFile)(join(BIN, "jest"), ["--listTests", ...related], { cwd: ROOT });
  const found = stdout
    .split("\n")
    .filter((path) => path !== "")
    .map((path) => relative(ROOT, path))
    .sort((a, b) => distanceTo(a) - distanceTo(b) || a.localeCompare(b));
  if (found.length === 0) return 0;
  const code = await run("jest", ["--runTestsByPath", ...found.slice(0, MOST_TESTS)]);
  const more = found.length - MOST_TESTS;
  if (more > 0) {
    const tested = `the ${MOST_TESTS} nearest of ${found.length} test files that import ${file} were run`;
    process.stdout.write(`${tested}; make test ARGS=${folder} runs all\n`);
  }
  return code;
}

/** Return the number of folders between the file and a test. The test with the same name comes first. */
function distanceTo(test) {
  if (test.replace(/\.test\.\w+$/, "") === file.replace(SCRIPT, "")) return -1;
  const [from, to] = [dirname(file).split(sep), dirname(test).split(sep)];
  const shared = from.findIndex((part, at) => part !== to[at]);
  const common = shared === -1 ? from.length : shared;
  return from.length + to.length - 2 * common;
}

/** Return the package's folder, such as "libs/domain", or the file's own folder if it belongs to no package. */
function packageOf(path) {
  for (let at = dirname(path); at !== "."; at = dirname(at)) {
    if (existsSync(join(ROOT, at, "package.json"))) return at;
  }
  return dirname(path);
}

/**
 * Check the types of the package's sources, which are one project. All tests together are another project, of which
 * only the package's own tests are checked.
 */
async function types() {
  const isProject = existsSync(join(ROOT, folder, "tsconfig.json"));
  if (isProject) {
    const code = await run("tsc", ["-b", folder]);
    if (code !== 0) return code;
  }
  const tests = globSync(`${folder}/**/*.test.ts`, { cwd: ROOT, exclude: ["**/node_modules/**", "**/dist/**"] });
  const files = [...new Set([...tests, ...(TYPED.test(file) && !isProject ? [file] : [])])].map((path) =>
    join(ROOT, path),
  );
  if (files.length === 0) return 0;
  const cache = join(ROOT, "node_modules/.cache/rollcall-check");
  mkdirSync(cache, { recursive: true });
  const config = join(cache, `${folder.replaceAll("/", "-")}.json`);
  writeFileSync(config, JSON.stringify({ extends: join(ROOT, "tsconfig.tests.json"), files, include: [] }));
  return run("tsc", ["-p", config]);
}

/** Run a program from the workspace's dependencies. Returns its exit code. */
function run(program, args) {
  return new Promise((done) => {
    spawn(join(BIN, program), args, { cwd: ROOT, stdio: "inherit" }).on("close", (code) => done(code ?? 1));
  });
}
