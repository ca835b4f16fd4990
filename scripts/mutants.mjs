// Apply each patch of mutants/ to a copy of the tree and check that its tests detect it, or for a patch without tests
// the explorer or the simulation.
// Usage: node scripts/mutants.mjs [NAME ...] applies the patches whose names contain one of the words, or all
// patches without words. SHARD=2/4 in the environment applies the second of four parts of them. With "domain" as the
// first word, Stryker mutates libs/domain instead: see mutation-score.mjs.
import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { evaluateHunt } from "./evaluate-hunt.mjs";
import { readPatch, takeShard } from "./mutant-patch.mjs";
import { runTests } from "./mutant-tests.mjs";
import { printMutationScore } from "./mutation-score.mjs";

const ROOT = resolve(import.meta.dirname, "..");
const MUTANTS = join(ROOT, "mutants");
/**
 * The time limit of a search or of tests. One that takes longer counts as having found nothing, unless its patch says
 * that the mutant hangs: `Hangs: why`.
 */
const TIMEOUT_MS = 10 * 60_000;
const FOUND = 3;

const LIBRARY = "domain";
/** The prefix of the patches that break jobs and executions. */
const WORK = "work-";
const HUNTERS = {
  health: "simulation/src/explorer/hunt-main.ts",
  work: "simulation/src/work/hunt-main.ts",
};

const COPY_LINKS = { recursive: true, verbatimSymlinks: true };
/** Test files that passed without any mutant. */
const passing = new Set();

const words = process.argv.slice(2);
const copy = copyTree();
try {
  if (words[0] === LIBRARY) await scoreLibrary(words.slice(1));
  else await tryPatches();
} finally {
  rmSync(copy, { recursive: true, force: true });
}

async function tryPatches() {
  const named = readdirSync(MUTANTS)
    .filter((name) => name.endsWith(".patch"))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)));
  const patches = takeShard(named, process.env.SHARD ?? "");
  let survivors = 0;
  let unexpected = 0;
  for (const name of patches) {
    const patch = join(MUTANTS, name);
    const { tests, survives, hangs } = readPatch(readFileSync(patch, "utf8"));
    const hunter = name.startsWith(WORK) ? HUNTERS.work : HUNTERS.health;
    const failure = await failureWithout(tests);
    if (failure !== null) {
      unexpected += 1;
      print(`NO TEST  ${name}: its tests fail without it: ${failure}`);
      continue;
    }
    execFileSync("git", ["apply", patch], { cwd: copy });
    const started = performance.now();
    const { found, isTooLong } = tests.length > 0 ? await runTests(copy, tests, TIMEOUT_MS) : await hunt(hunter);
    execFileSync("git", ["apply", "--reverse", patch], { cwd: copy });
    const seconds = Math.round((performance.now() - started) / 1_000);
    const { isCaught, isExpected, says } = evaluateHunt({ found, isTooLong, survives, hangs });
    if (!isCaught) survivors += 1;
    if (!isExpected) unexpected += 1;
    print(`${isCaught ? "caught  " : isTooLong ? "TOO LONG" : "SURVIVES"} ${name}, ${seconds} s: ${says}`);
  }
  print(`${patches.length} mutants, ${survivors} survive`);
  if (unexpected > 0) process.exitCode = 1;
}

/**
 * Run tests without a mutant, because tests that fail anyway detect nothing. Returns the first failure; null if all pass.
 */
async function failureWithout(tests) {
  const unchecked = tests.filter((test) => !passing.has(test));
  const { found, isTooLong } = await runTests(copy, unchecked, TIMEOUT_MS);
  if (isTooLong || found !== null) return found ?? "the tests timed out";
  for (const test of unchecked) passing.add(test);
  return null;
}

async function scoreLibrary(folders) {
  const runner = join(ROOT, "scripts", "stryker", "test-runner.mjs");
  await printMutationScore({ root: ROOT, copy: join(copy, "libs", LIBRARY), runner, folders });
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

/** Copy all files that git does not ignore, with links to the installed dependencies and tools. */
function copyTree() {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-mutants-"));
  const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  for (const file of files.split("\n").filter((it) => it !== "" && existsSync(join(ROOT, it)))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file), COPY_LINKS);
    const modules = join(dirname(file), "node_modules");
    if (basename(file) !== "package.json" || !existsSync(join(ROOT, modules))) continue;
    // Links between packages are relative, so they point to the copies.
    if (dirname(file) !== ".") cpSync(join(ROOT, modules), join(folder, modules), COPY_LINKS);
  }
  for (const shared of ["node_modules", ".tools"]) {
    if (existsSync(join(ROOT, shared))) symlinkSync(join(ROOT, shared), join(folder, shared));
  }
  return folder;
}

/**
 * Run a search. Returns the invariant that it found broken, or null, and whether the search was stopped because it
 * took too long.
 *
 * @param program the search program. Patches that break work need the simulation with work.
 */
function hunt(program) {
  return new Promise((done, fail) => {
    execFile(
      process.execPath,
      ["--conditions=source", program],
      { cwd: copy, timeout: TIMEOUT_MS },
      (error, stdout, stderr) => {
        if (error === null) done({ found: null, isTooLong: false });
        else if (error.code === FOUND) done({ found: stdout.trim().split("\n").at(-1), isTooLong: false });
        else if (error.killed) done({ found: null, isTooLong: true });
        else fail(new Error(`the search failed: ${stderr.trim().split("\n").at(-1) || error.message}`));
      },
    );
  });
}
