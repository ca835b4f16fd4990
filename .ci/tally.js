// Prints how many tests passed, failed and were skipped, from jest's JSON, and exits accordingly.
// Usage: node tally.js RESULTS STATUS [RESULTS STATUS]   the file that jest wrote, and the exit status of `make test`; then the
// same of a second run of the files that failed, whose outcome replaces that of the first.
import { countTests, readResults } from "./results.js";

const [firstFile = "", firstStatus = "1", secondFile, secondStatus = "1"] = process.argv.slice(2);
const first = readResults(firstFile);
const second = secondFile === undefined ? null : readResults(secondFile);

/** Of the first run what was not run again, and all of the second. */
function replaceRerun() {
  const again = new Set((second.testResults ?? []).map(({ name }) => name));
  const outcomes = (first.testResults ?? [])
    .filter(({ name }) => again.has(name))
    .flatMap(({ assertionResults }) => assertionResults ?? [])
    .map(({ status }) => status);
  const passed = outcomes.filter((outcome) => outcome === "passed").length;
  const skipped = outcomes.filter((outcome) => outcome === "pending" || outcome === "todo").length;
  const before = countTests(first);
  const after = countTests(second);
  return {
    passed: before.passed - passed + after.passed,
    skipped: before.skipped - skipped + after.skipped,
    failed: after.failed,
  };
}

const { passed, skipped, failed: counted } = second ? replaceRerun() : countTests(first);
const status = Number(second ? secondStatus : firstStatus);
// Whatever made `make test` fail beside the tests is a failure too, and so is a run in which nothing passed.
const failed = counted === 0 && (status !== 0 || passed === 0) ? 1 : counted;

if (counted === 0 && status !== 0) {
  console.error(`make test failed with status ${status}; see above`);
}
if (second && failed === 0) {
  for (const { name } of second.testResults ?? []) {
    console.error(`flaky, passed when it was run again: ${name}`);
  }
}
process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
process.exitCode = failed === 0 ? 0 : 1;
