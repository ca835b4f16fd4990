// Run the test files that a mutant names, in a copy of the tree that contains the mutant.
import { execFile } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";

/** The time limit of one test. A test that hangs then fails with its name, and before the limit of the whole run. */
const TEST_TIMEOUT_MS = 60_000;
const SDKS = "node_modules/.cache/rollcall-sdk";

/** The first line of the output that names a failed test, by kind of test. */
const FAILED_TEST = {
  jest: /^ {2}● (.+)$/m,
  go: /^\s*--- FAIL: (\S+)/m,
  python: /^FAILED \S*::(\S+)/m,
  typescript: /^not ok \d+ - (.+)$/m,
  java: /^\[ERROR\] +(\w+\.\w+)/m,
};

/** Runs the files of each kind of test. Each resolves with the result of the run. */
const RUNNERS = { jest: runJest, go: runGo, python: runPython, typescript: runTypescript, java: runJava };

/**
 * Run test files until one fails.
 *
 * @param {string} copy the copy of the tree.
 * @param {readonly string[]} paths the test files, relative to the tree.
 * @param {number} timeoutMs the time limit of a run.
 * @returns {Promise<{ found: string | null, isTooLong: boolean }>} `found`: the name of the first failed test; null if
 *   all tests pass. Rejects if an SDK with the mutant cannot be built.
 */
export async function runTests(copy, paths, timeoutMs) {
  for (const [kind, files] of Map.groupBy(paths, kindOf)) {
    const { isPassed, isTooLong, output } = await RUNNERS[kind]({ copy, files, timeoutMs });
    if (isTooLong) return { found: null, isTooLong };
    if (!isPassed) return { found: FAILED_TEST[kind].exec(output)?.[1] ?? lastLine(output), isTooLong };
  }
  return { found: null, isTooLong: false };
}

/** @param {string} path */
function kindOf(path) {
  const [, language] = /^sdk\/(go|python|typescript|java)\//.exec(path) ?? [];
  return language ?? "jest";
}

function runJest({ copy, files, timeoutMs }) {
  const jest = [join(copy, "node_modules/jest/bin/jest.js"), "--runInBand", "--bail", "--testTimeout", TEST_TIMEOUT_MS];
  return run(process.execPath, [...jest.map(String), "--runTestsByPath", ...files], { cwd: copy, timeoutMs });
}

async function runGo({ copy, files, timeoutMs }) {
  const root = join(copy, "sdk/go");
  let result = { isPassed: true, isTooLong: false, output: "" };
  for (const file of files) {
    if (!result.isPassed) break;
    // Run only the tests of this file, because others of the package start a control plane.
    const text = await readFile(join(copy, file), "utf8");
    const names = [...text.matchAll(/^func (Test\w+)\(/gm)].map(([, name]) => name);
    const folder = `./${relative(root, join(copy, dirname(file)))}`;
    // The paths of the copy would make Go's cache useless for the next run.
    const words = ["test", "-trimpath", "-count=1", "-run", `^(${names.join("|")})$`, folder];
    result = await run("go", words, { cwd: root, timeoutMs });
  }
  return result;
}

async function runPython({ copy, files, timeoutMs }) {
  const wheel = lastLine(await makeSdk(copy, "python"));
  const folder = join(copy, SDKS, "python-tests");
  const python = join(folder, "bin/python");
  const pip = ["-m", "pip", "install", "--quiet"];
  await runOrThrow("python3", ["-m", "venv", folder], copy);
  await runOrThrow(python, [...pip, `${wheel}[agent]`, "pytest==8.4.2"], copy);
  // The version is always the same, so pip would keep an earlier wheel.
  await runOrThrow(python, [...pip, "--no-deps", "--force-reinstall", wheel], copy);
  const words = ["-m", "pytest", "-x", "-p", "no:cacheprovider", "--rootdir", join(copy, "sdk/python")];
  return run(python, [...words, ...files.map((file) => join(copy, file))], { cwd: folder, timeoutMs });
}

async function runTypescript({ copy, files, timeoutMs }) {
  await makeSdk(copy, "typescript");
  const stage = join(copy, SDKS, "typescript");
  await cp(join(copy, "sdk/vectors"), join(stage, "vectors"), { recursive: true });
  const tests = files.map((file) => relative("sdk/typescript", file));
  return run(process.execPath, ["--test", "--test-reporter=tap", ...tests], { cwd: stage, timeoutMs });
}

async function runJava({ copy, files, timeoutMs }) {
  await makeSdk(copy, "java");
  const tests = files.map((file) => basename(file, ".java")).join(",");
  const words = ["--batch-mode", "--no-transfer-progress", `-Dtest=${tests}`, "test"];
  return run("mvn", words, { cwd: join(copy, SDKS, "java"), timeoutMs });
}

/** Make an SDK from the copy. Returns the output, whose last line is the path of the package. */
function makeSdk(copy, language) {
  return runOrThrow(process.execPath, ["scripts/sdk/main.mjs", language], copy);
}

async function runOrThrow(program, words, cwd) {
  const { isPassed, output } = await run(program, words, { cwd, timeoutMs: 0 });
  if (!isPassed) throw new Error(`${program} ${words.join(" ")} failed: ${output.slice(-2_000)}`);
  return output;
}

function run(program, words, { cwd, timeoutMs }) {
  const environment = { ...process.env, CI: "true", NODE_OPTIONS: "" };
  const options = { cwd, env: environment, timeout: timeoutMs, maxBuffer: 64 * 1_024 * 1_024 };
  return new Promise((done) => {
    execFile(program, words, options, (error, stdout, stderr) => {
      done({ isPassed: error === null, isTooLong: error?.killed === true, output: stdout + stderr });
    });
  });
}

/** @param {string} text */
function lastLine(text) {
  return text.trim().split("\n").at(-1) ?? "";
}
