/**
 * The test environment for native-runtime.cjs: the global object of Node.js.
 */
class NativeEnvironment {
  global = globalThis;
  #console = globalThis.console;
  #exit = process.exit;

  async setup() {}

  async teardown() {
    globalThis.console = this.#console;
    process.exit = this.#exit;
  }

  getVmContext() {
    return null;
  }
}

module.exports = NativeEnvironment;
