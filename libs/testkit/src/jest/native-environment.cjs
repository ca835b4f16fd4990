/** The environment of native-runtime.cjs: Node's own global object. */
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
