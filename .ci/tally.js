// Prints how many tests passed, failed and were skipped, from jest's JSON, and exits accordingly.
// Usage: node tally.js RESULTS STATUS   the file that jest wrote, and the exit status of `make test`.
import { readFileSync } from "node:fs";

const [resultsFile = "", statusText = "1"] = process.argv.slice(2);
const status = Number(statusText);

/** Jest's results; nothing when a check before jest failed, and so no test ran. */
function readResults() {
  try {
    return JSON.parse(readFileSync(resultsFile, "utf8"));
  } catch {
    return {};
  }
}

const results = readResults();
const passed = results.numPassedTests ?? 0;
const skipped = (results.numPendingTests ?? 0) + (results.numTodoTests ?? 0);
// A suite that cannot even be loaded has no tests to count: it is one failure itself.
const counted = (results.numFailedTests ?? 0) + (results.numRuntimeErrorTestSuites ?? 0);
// So is whatever made `make test` fail beside the tests, and a run in which nothing passed.
const failed = counted === 0 && (status !== 0 || passed === 0) ? 1 : counted;

if (counted === 0 && status !== 0) {
  console.error(`make test failed with status ${status}; see above`);
}
for (const { name, assertionResults } of results.testResults ?? []) {
  for (const { fullName, status: outcome, invocations } of assertionResults ?? []) {
    if (outcome === "passed" && invocations > 1) {
      console.error(`flaky, passed when it was run again: ${fullName} (${name})`);
    }
  }
}
process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
process.exitCode = failed === 0 ? 0 : 1;
