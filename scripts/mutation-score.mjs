// Let Stryker make every small change to a library, folder by folder, and count how many of these mutants its tests
// detect. Usage: node scripts/mutation-score.mjs domain [FOLDER ...]. Reports go to coverage/mutation.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// The version of Stryker. npx downloads it when needed, because it is larger than all other tools together and rarely
// used.
const STRYKER = "@stryker-mutator/core@9.6.1";
const FOLDER_TIMEOUT_MS = 15 * 60_000;
const CONCURRENCY = 2;
const NOTICED = new Set(["Killed", "Timeout"]);
const UNNOTICED = new Set(["Survived", "NoCoverage"]);
/** Folders without rules of the domain, because they have only helpers for tests. */
const LEFT_OUT = new Set(["testing"]);
const FILES_BESIDE = "top";
/**
 * Files with descriptions of events. They are not mutated, because `make test` already compares docs/events.md, which
 * is generated from them, and each mutant would run all tests.
 */
const PROSE = ["!src/events/*-catalogue.ts", "!src/events/cluster-events.ts"];
/**
 * Folders that do much work on import, so that each mutant needs a separate process. Only the tests of the folder
 * itself are loaded for them.
 */
const OWN_TESTS = new Set(["events", "limits"]);

/**
 * Mutate folders of `copy`, a copy of the library that this function can change. If `folders` is empty, mutate all
 * folders.
 */
export async function printMutationScore({ root, copy, runner, folders }) {
  const out = join(root, "coverage", "mutation");
  mkdirSync(out, { recursive: true });
  const all = readdirSync(join(copy, "src")).filter((name) => statSync(join(copy, "src", name)).isDirectory());
  const chosen = folders.length > 0 ? folders : [...all.filter((name) => !LEFT_OUT.has(name)), FILES_BESIDE];
  const sums = [];
  print("| folder | mutants | noticed | score |\n|---|---|---|---|");
  for (const folder of chosen) {
    const report = join(out, `${folder}.json`);
    const tests = OWN_TESTS.has(folder) ? `${folder}/` : "";
    const isDone = await runStryker(copy, configOf(folder, { runner, report }), join(out, `${folder}.log`), tests);
    if (!isDone) {
      print(`| ${folder} | not done, see ${join(out, `${folder}.log`)} | | |`);
      process.exitCode = 1;
      continue;
    }
    const { noticed, survivors } = read(report);
    writeFileSync(join(out, `${folder}.txt`), `${survivors.join("\n")}\n`);
    sums.push({ noticed, all: noticed + survivors.length });
    printRow(folder, sums.at(-1));
  }
  const sum = (key) => sums.reduce((total, it) => total + it[key], 0);
  printRow("all", { noticed: sum("noticed"), all: sum("all") });
  print(`\nSurvivors: ${join(out, "*.txt")}`);
}

function configOf(folder, { runner, report }) {
  const files = folder === FILES_BESIDE ? "src/*.ts" : `src/${folder}/**/*.ts`;
  return {
    mutate: [files, "!src/**/*.test.ts", "!src/index.ts", "!src/*/index.ts", ...PROSE],
    plugins: [runner],
    testRunner: "domain",
    coverageAnalysis: "perTest",
    concurrency: CONCURRENCY,
    inPlace: true,
    disableTypeChecks: false,
    timeoutMS: 5_000,
    reporters: ["json"],
    jsonReporter: { fileName: report },
    allowEmpty: true,
    cleanTempDir: "always",
  };
}

/**
 * Run Stryker. Returns whether it finished in time.
 *
 * @param tests prefixes of the paths of tests to run.
 */
function runStryker(copy, config, log, tests) {
  writeFileSync(join(copy, "stryker.config.json"), JSON.stringify(config));
  const args = ["--yes", `--package=${STRYKER}`, "--", "stryker", "run", "stryker.config.json"];
  return new Promise((done) => {
    // Use a separate process group, so that Stryker's processes can be stopped together.
    const env = { ...process.env, MUTATION_TESTS: tests };
    const stryker = spawn("npx", args, { cwd: copy, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const lines = [];
    for (const stream of [stryker.stdout, stryker.stderr]) stream.on("data", (chunk) => lines.push(chunk));
    const timer = setTimeout(() => process.kill(-stryker.pid, "SIGKILL"), FOLDER_TIMEOUT_MS);
    stryker.on("close", (code) => {
      clearTimeout(timer);
      writeFileSync(log, Buffer.concat(lines));
      done(code === 0);
    });
  });
}

/** Read how many mutants the tests detected, and the location and replacement of each survivor. */
function read(report) {
  const survivors = [];
  let noticed = 0;
  for (const [file, { mutants, source }] of Object.entries(JSON.parse(readFileSync(report, "utf8")).files)) {
    const lines = source.split("\n");
    for (const { status, mutatorName, location, replacement } of mutants) {
      if (NOTICED.has(status)) noticed += 1;
      if (!UNNOTICED.has(status)) continue;
      const { start, end } = location;
      const last = start.line === end.line ? end.column - 1 : undefined;
      const text = (lines[start.line - 1] ?? "").slice(start.column - 1, last).trim();
      const place = `${file}:${start.line}:${start.column}`;
      const mark = status === "NoCoverage" ? " (never run)" : "";
      survivors.push(`${place} ${mutatorName}: ${text} => ${(replacement ?? "").replace(/\s+/g, " ")}${mark}`);
    }
  }
  return { noticed, survivors };
}

function printRow(name, { noticed, all }) {
  print(`| ${name} | ${all} | ${noticed} | ${all === 0 ? "-" : `${((100 * noticed) / all).toFixed(1)} %`} |`);
}

function print(line) {
  process.stdout.write(`${line}\n`);
}
