// Prints how many tests passed, failed and were skipped, from jest's JSON, and exits accordingly. Usage: node tally.js
// STAGE [-- STAGE]...   with a STAGE as RESULTS STATUS [RESULTS STATUS]: the file that jest wrote and the exit status
// of its make target; then the same for a second run of the files that failed, whose results replace those of the
// first.
import { countTests, readResults } from "./results.js";

/** The arguments of each stage. */
function stages(words) {
  const found = [[]];
  for (const word of words) {
    if (word === "--") found.push([]);
    else found.at(-1).push(word);
  }
  return found;
}

/** The results of the first run except the repeated files, and all of the second. */
function replaceRerun(first, second) {
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

/** The result of one stage. */
function countStage([firstFile = "", firstStatus = "1", secondFile, secondStatus = "1"]) {
  const first = readResults(firstFile);
  const second = secondFile === undefined ? null : readResults(secondFile);
  const counts = second ? replaceRerun(first, second) : countTests(first);
  const status = Number(second ? secondStatus : firstStatus);
  // A failure outside the tests also fails a stage. A stage where nothing passed fails, too.
  const hasFailedElse = counts.failed === 0 && (status !== 0 || counts.passed === 0);
  if (hasFailedElse) console.error(`a stage failed with status ${status}; see above`);
  const failed = hasFailedElse ? 1 : counts.failed;
  if (second && failed === 0) {
    for (const { name } of second.testResults ?? []) {
      console.error(`flaky, passed on the second run: ${name}`);
    }
  }
  return { ...counts, failed };
}

const total = { passed: 0, failed: 0, skipped: 0 };
for (const stage of stages(process.argv.slice(2))) {
  const counts = countStage(stage);
  for (const outcome of Object.keys(total)) total[outcome] += counts[outcome];
}
process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
process.exitCode = total.failed === 0 ? 0 : 1;
