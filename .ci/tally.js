// Prints how many tests passed, failed and were skipped, from jest's JSON, and exits accordingly. Usage: node tally.js
// STAGE [-- STAGE]...   with a STAGE as RESULTS STATUS [RESULTS STATUS]: the file that jest wrote and the exit status
// of its make target; then the same of a second run of the files that failed, whose outcome replaces that of the first.
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

/** Of the first run what was not run again, and all of the second. */
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

/** What came of one stage. */
function countStage([firstFile = "", firstStatus = "1", secondFile, secondStatus = "1"]) {
  const first = readResults(firstFile);
  const second = secondFile === undefined ? null : readResults(secondFile);
  const counts = second ? replaceRerun(first, second) : countTests(first);
  const status = Number(second ? secondStatus : firstStatus);
  // What makes a stage fail beside its tests is a failure too, and so is a stage in which nothing passed.
  const hasFailedElse = counts.failed === 0 && (status !== 0 || counts.passed === 0);
  if (hasFailedElse) console.error(`a stage failed with status ${status}; see above`);
  const failed = hasFailedElse ? 1 : counts.failed;
  if (second && failed === 0) {
    for (const { name } of second.testResults ?? []) {
      console.error(`flaky, passed when it was run again: ${name}`);
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
