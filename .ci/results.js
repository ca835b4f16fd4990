import { readFileSync } from "node:fs";

/** What jest wrote as JSON; nothing when a check before jest failed, and so no test ran. */
export function readResults(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return {};
  }
}

/**
 * How many tests ended in which way. A suite that cannot even be loaded has no tests to count: it is one failure
 * itself.
 */
export function countTests(results) {
  return {
    passed: results.numPassedTests ?? 0,
    skipped: (results.numPendingTests ?? 0) + (results.numTodoTests ?? 0),
    failed: (results.numFailedTests ?? 0) + (results.numRuntimeErrorTestSuites ?? 0),
  };
}
