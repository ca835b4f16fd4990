// Replaces @jest/globals for test files. The bindings are live, because each test file has a separate runner, but
// files that many tests import are loaded only once.
import { ModernFakeTimers } from "@jest/fake-timers";

const TEST_TIMEOUT = Symbol.for("TEST_TIMEOUT_SYMBOL");
/** Tests of one package. Tests of complete programs, in services/rollcall, tests and bench, can take longer. */
const UNIT = /\/(?:libs|services\/(?!rollcall\/)[a-z]+)\/[^:]*\.test\.tsx?$/;
const UNIT_LIMIT_MS = 60_000;

export let afterAll;
export let afterEach;
export let beforeAll;
export let beforeEach;
export let describe;
export let expect;
export let it;
export let jest;

/** Start a test file with the functions of its runner. */
export function beginFile(functions, config, path) {
  if (UNIT.test(path)) globalThis[TEST_TIMEOUT] = UNIT_LIMIT_MS;
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } = functions);
  const timers = new ModernFakeTimers({ config, global: globalThis });
  jest = Object.assign(timers, {
    setTimeout: (timeoutMs) => {
      globalThis[TEST_TIMEOUT] = timeoutMs;
    },
  });
}

/** Return to real timers, and reset the time limit that the file has set. */
export function endFile() {
  jest?.useRealTimers();
  delete globalThis[TEST_TIMEOUT];
}
