// What test files import from @jest/globals. The bindings are live: each test file has a runner of its own, and files
// that many tests import are loaded once.
import { ModernFakeTimers } from "@jest/fake-timers";

const TEST_TIMEOUT = Symbol.for("TEST_TIMEOUT_SYMBOL");

export let afterAll;
export let afterEach;
export let beforeAll;
export let beforeEach;
export let describe;
export let expect;
export let it;
export let jest;

/** Begin a test file with its runner's functions. */
export function beginFile(functions, config) {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } = functions);
  const timers = new ModernFakeTimers({ config, global: globalThis });
  jest = Object.assign(timers, {
    setTimeout: (timeoutMs) => {
      globalThis[TEST_TIMEOUT] = timeoutMs;
    },
  });
}

/** Return to real timers, and forget the file's own time limit. */
export function endFile() {
  jest?.useRealTimers();
  delete globalThis[TEST_TIMEOUT];
}
