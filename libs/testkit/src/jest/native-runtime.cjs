// Runs test files directly in Node.js, whereas jest-runtime runs each file in a vm context with separate modules.
// This runtime loads modules that several files of a worker use only once. Otherwise, loading modules would be most
// of the cost of a test file. All tests of a worker share the global object and the modules, so tests must not
// change either. Module mocks and coverage are not supported.
const asyncHooks = require("node:async_hooks");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const urlOf = (name) => pathToFileURL(join(__dirname, name)).href;

require("./source-hooks.cjs");
const globals = import(urlOf("test-globals.js"));

/**
 * Replaces the AsyncLocalStorage that jest-circus uses to find the test behind an unhandled error. The real
 * AsyncLocalStorage would make Node.js track every promise of the worker. With this replacement, an unhandled error
 * fails the test file instead of the test.
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

  /** Load jest-circus again for each test file, because its state belongs to one file. */
  requireInternalModule(path) {
    delete require.cache[path];
    delete globalThis[Symbol.for("EVENT_HANDLERS")];
    // Define the property instead of assigning it, because it is a getter.
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
    this.#globals.beginFile(this.#functions, this.#config, path);
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
