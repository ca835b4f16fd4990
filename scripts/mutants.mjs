// Apply each patch of mutants/ to a copy of the tree and see that the explorer or the simulation notices.
// Usage: node scripts/mutants.mjs [NAME ...]: those whose name contains one of the words; without any, all of them.
// With "domain" as the first word, Stryker breaks libs/domain instead: see mutation-score.mjs.
import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { judgeHunt } from "./judge-hunt.mjs";
import { printMutationScore } from "./mutation-score.mjs";

const ROOT = resolve(import.meta.dirname, "..");
const MUTANTS = join(ROOT, "mutants");
/** A search that takes longer has found nothing, unless its patch says that the mutant hangs: `Hangs: why`. */
const TIMEOUT_MS = 10 * 60_000;
const FOUND = 3;

const LIBRARY = "domain";
/** What the names of patches begin with that break work. */
const WORK = "work-";
const HUNTERS = {
  health: "services/health/src/explorer/hunt-main.ts",
  work: "bench/src/simulation/hunt-main.ts",
};

const words = process.argv.slice(2);
const copy = copyTree();
try {
  if (words[0] === LIBRARY) await scoreLibrary(words.slice(1));
  else await tryPatches();
} finally {
  rmSync(copy, { recursive: true, force: true });
}

async function tryPatches() {
  const patches = readdirSync(MUTANTS)
    .filter((name) => name.endsWith(".patch"))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)));
  let survivors = 0;
  let unexpected = 0;
  for (const name of patches) {
    const patch = join(MUTANTS, name);
    const text = readFileSync(patch, "utf8");
    const survives = text.match(/^Survives: (.*)$/m)?.[1];
    const hangs = text.match(/^Hangs: (.*)$/m)?.[1];
    const hunter = name.startsWith(WORK) ? HUNTERS.work : HUNTERS.health;
    execFileSync("git", ["apply", patch], { cwd: copy });
    const started = performance.now();
    const { found, isTooLong } = await hunt(hunter);
    execFileSync("git", ["apply", "--reverse", patch], { cwd: copy });
    const seconds = Math.round((performance.now() - started) / 1_000);
    const { isCaught, isExpected, says } = judgeHunt({ found, isTooLong, survives, hangs });
    if (!isCaught) survivors += 1;
    if (!isExpected) unexpected += 1;
    print(`${isCaught ? "caught  " : isTooLong ? "TOO LONG" : "SURVIVES"} ${name}, ${seconds} s: ${says}`);
  }
  print(`${patches.length} mutants, ${survivors} survive`);
  if (unexpected > 0) process.exitCode = 1;
}

async function scoreLibrary(folders) {
  const runner = join(ROOT, "scripts", "stryker", "test-runner.mjs");
  await printMutationScore({ root: ROOT, copy: join(copy, "libs", LIBRARY), runner, folders });
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

/** The tracked files, with links to what is installed here. */
function copyTree() {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-mutants-"));
  const files = execFileSync("git", ["ls-files", "libs", "services", "bench", "package.json"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  for (const file of files.split("\n").filter((it) => it !== "" && existsSync(join(ROOT, it)))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(ROOT, file), join(folder, file));
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const packages = ["libs", "services"].flatMap((group) =>
    readdirSync(join(folder, group)).map((name) => join(group, name)),
  );
  for (const one of [...packages, "bench"]) {
    const modules = join(ROOT, one, "node_modules");
    // Links between packages are relative, so that they lead to the copies.
    const options = { recursive: true, verbatimSymlinks: true };
    if (existsSync(modules)) cpSync(modules, join(folder, one, "node_modules"), options);
  }
  return folder;
}

/**
 * What the search has found, null for nothing, and whether it was ended because it took too long.
 *
 * @param program that searches: patches of work are found by the simulation that has work.
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
        else fail(new Error(`the search broke off: ${stderr.trim().split("\n").at(-1) || error.message}`));
      },
    );
  });
}
