// A test runner for Stryker. It loads the domain's tests once per process, in Node itself, and runs only those that a
// mutant needs. Tests share no state, so nothing is reloaded between two mutants. For mutants in code that runs on
// import, Stryker starts a new process.
import { readdirSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { resolve } from "./hooks.mjs";

const COMPLETE = "complete";
const SUCCESS = 0;
const FAILED = 1;
/** The instrumented code reads this variable. */
globalThis.__stryker__ ??= {};
const context = globalThis.__stryker__;

registerHooks({ resolve });
const circus = requireThrough("jest", "@jest/core", "jest-config")("jest-circus");
const { jestExpect: expect } = requireThrough("@jest/globals")("@jest/expect");
globalThis.testGlobals = { ...circus, expect };

class DomainTestRunner {
  /** The tests, keyed by id. */
  #tests = new Map();

  capabilities() {
    return { reloadEnvironment: false };
  }

  async dryRun({ coverageAnalysis }) {
    await this.#load();
    const tests = [];
    for (const test of this.#tests.values()) {
      if (coverageAnalysis === "perTest") context.currentTestId = test.id;
      const started = performance.now();
      const failureMessage = await run(test);
      const timeSpentMs = performance.now() - started;
      const { id, name, fileName } = test;
      const status = failureMessage === null ? SUCCESS : FAILED;
      tests.push({ id, name, fileName, timeSpentMs, status, failureMessage: failureMessage ?? undefined });
    }
    context.currentTestId = undefined;
    return { status: COMPLETE, tests, mutantCoverage: context.mutantCoverage };
  }

  async mutantRun({ activeMutant, mutantActivation, testFilter, sandboxFileName, hitLimit }) {
    if (mutantActivation === "static") context.activeMutant = activeMutant.id;
    try {
      await this.#load();
    } catch (error) {
      return { status: "killed", killedBy: ["import"], failureMessage: String(error), nrOfTests: 0 };
    }
    context.activeMutant = activeMutant.id;
    context.hitCount = hitLimit === undefined ? undefined : 0;
    context.hitLimit = hitLimit;
    const result = await this.#runUntilKilled(testFilter, sandboxFileName);
    context.activeMutant = undefined;
    if (hitLimit !== undefined && context.hitCount > hitLimit) return { status: "timeout", reason: "an endless loop" };
    return result;
  }

  async #runUntilKilled(testFilter, sandboxFileName) {
    let nrOfTests = 0;
    for (const test of nearestFirst(this.#chosen(testFilter), sandboxFileName)) {
      nrOfTests += 1;
      const failureMessage = await run(test);
      if (failureMessage !== null) return { status: "killed", killedBy: [test.id], failureMessage, nrOfTests };
    }
    return { status: "survived", nrOfTests };
  }

  #chosen(testFilter) {
    if (testFilter === undefined) return [...this.#tests.values()];
    return testFilter.flatMap((id) => this.#tests.get(id) ?? []);
  }

  async #load() {
    if (this.#tests.size > 0) return;
    const root = join(process.cwd(), "src");
    const { MUTATION_TESTS: chosen = "" } = process.env;
    const isChosen = (name) => name.endsWith(".test.ts") && name.startsWith(chosen);
    const names = readdirSync(root, { recursive: true }).filter(isChosen);
    for (const name of names.sort()) {
      circus.resetState();
      await import(pathToFileURL(join(root, name)).href);
      this.#collect(circus.getState().rootDescribeBlock, { fileName: join(root, name), name, hooks: [] });
    }
  }

  #collect(block, { fileName, name, hooks }) {
    const all = [...hooks, ...block.hooks];
    for (const child of block.children) {
      const within = `${name} > ${child.name}`;
      if (child.type === "describeBlock") this.#collect(child, { fileName, name: within, hooks: all });
      else {
        // The id is a number, because several rows of a table can have the same name and because names can contain a
        // seed.
        const id = `${basename(fileName)} ${this.#tests.size}`;
        this.#tests.set(id, { id, name: within, fileName, hooks: all, carryOut: child.fn });
      }
    }
  }
}

/**
 * Sort tests: first those of the mutated file, then those of its folder. They detect the most mutants and take the
 * least time.
 */
function nearestFirst(tests, file) {
  const name = basename(file, ".ts");
  const distance = ({ fileName }) => {
    if (dirname(fileName) !== dirname(file)) return 2;
    return basename(fileName).startsWith(name) ? 0 : 1;
  };
  return tests.toSorted((one, other) => distance(one) - distance(other));
}

/** Run a test. Returns its error, or null if it passes. */
async function run({ hooks, carryOut }) {
  try {
    for (const { type, fn } of hooks) if (type === "beforeEach") await fn();
    await carryOut();
    return null;
  } catch (error) {
    return String(error?.stack ?? error);
  }
}

/** Create `require` as the last of these packages would use it. Each package depends on the next. */
function requireThrough(...packages) {
  let result = createRequire(import.meta.url);
  for (const name of packages) result = createRequire(result.resolve(`${name}/package.json`));
  return result;
}

export const strykerPlugins = [{ kind: "TestRunner", name: "domain", injectableClass: DomainTestRunner }];
