// Runs test files in Node itself and not, as jest-runtime does, each in a vm context with modules of its own. What the
// files of a worker have in common is loaded once, which is most of what a file of ours costs otherwise. Tests of one
// worker share the global object and the modules, so neither may be changed by a test. There are no module mocks, and
// no coverage.
const asyncHooks = require("node:async_hooks");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const urlOf = (name) => pathToFileURL(join(__dirname, name)).href;

require("./source-hooks.cjs");
const globals = import(urlOf("test-globals.js"));

/**
 * In place of the AsyncLocalStorage by which jest-circus knows the test of an error that nothing awaits: Node would
 * follow every promise of the worker for it. Such an error fails its test file instead.
 */
const noContext = { run: (_context, callback) => callback(), getStore: () => undefined };

/** The part of jest-runtime's `Runtime` that jest-runner and jest-circus call. */
class NativeRuntime {
  #config;
  #functions;
  #globals;

  constructor(config) {
    this.#config = config;
  }

  /** Load jest-circus again for each test file: its state belongs to one file. */
  requireInternalModule(path) {
    delete require.cache[path];
    delete globalThis[Symbol.for("EVENT_HANDLERS")];
    // Defined, not assigned: the property is a getter.
    const own = Object.getOwnPropertyDescriptor(asyncHooks, "AsyncLocalStorage");
    const value = new Proxy(asyncHooks.AsyncLocalStorage, { construct: () => noContext });
    Object.defineProperty(asyncHooks, "AsyncLocalStorage", { value, configurable: true, enumerable: true });
    try {
      return require(path);
    } finally {
      Object.defineProperty(asyncHooks, "AsyncLocalStorage", own);
    }
  }

  requireModule(path) {
    return require(path);
  }

  setGlobalsForRuntime(functions) {
    this.#functions = functions;
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule(path) {
    this.#globals = await globals;
    this.#globals.beginFile(this.#functions, this.#config);
    await import(pathToFileURL(path).href);
  }

  getSourceMaps() {
    return new Map();
  }

  getAllCoverageInfoCopy() {}

  enterTestCode() {}

  leaveTestCode() {}

  teardown() {
    this.#globals?.endFile();
    for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
      if (symbol.description === "JEST_STATE_SYMBOL") delete globalThis[symbol];
    }
  }
}

module.exports = NativeRuntime;
