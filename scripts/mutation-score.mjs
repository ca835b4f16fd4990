// Let Stryker break a library in every small way, folder by folder, and count what its tests notice.
// Usage: node scripts/mutants.mjs domain [FOLDER ...]. Reports go to coverage/mutation.
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Run by npx: with what it depends on it is larger than all other tools, and seldom run.
const STRYKER = "@stryker-mutator/core@9.6.1";
const FOLDER_TIMEOUT_MS = 15 * 60_000;
const CONCURRENCY = 2;
const NOTICED = new Set(["Killed", "Timeout"]);
const UNNOTICED = new Set(["Survived", "NoCoverage"]);
/** What is no rule: what tests stand on. */
const LEFT_OUT = new Set(["testing"]);
const FILES_BESIDE = "top";
/** What events are, in words: docs/events.md is made of them, and `make test` compares it. Each would run all tests. */
const PROSE = ["!src/events/*-catalogue.ts", "!src/events/cluster-events.ts"];
/**
 * Folders that do much as they are loaded, and in which each mutant needs a process of its own. Only the tests of the
 * folder itself are loaded there.
 */
const OWN_TESTS = new Set(["events", "limits"]);

/** Try the folders of `copy`, a copy of the library that may be changed; all of them without names. */
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
 * Whether it came to an end in time.
 *
 * @param tests what the paths of the tests to run begin with.
 */
function runStryker(copy, config, log, tests) {
  writeFileSync(join(copy, "stryker.config.json"), JSON.stringify(config));
  const args = ["--yes", `--package=${STRYKER}`, "--", "stryker", "run", "stryker.config.json"];
  return new Promise((done) => {
    // A group of its own, for its processes end with it.
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

/** How many were noticed, and what was not: where, and what stood in its place. */
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
