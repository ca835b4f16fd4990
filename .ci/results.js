import { readFileSync } from "node:fs";

/** The JSON that jest wrote; nothing if a check before jest failed, so that no test ran. */
export function readResults(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

/**
 * The number of tests by result. A suite that cannot be loaded has no tests to count: it counts as one failure.
 */
export function countTests(results) {
  return {
    passed: results.numPassedTests ?? 0,
    skipped: (results.numPendingTests ?? 0) + (results.numTodoTests ?? 0),
    failed: (results.numFailedTests ?? 0) + (results.numRuntimeErrorTestSuites ?? 0),
  };
}
