/**
 * Ends a run with the numbers of tests, after a list of what was missing on this machine for the skipped ones:
 *   11 skipped, because they need nats-server
 *   8113 passed, 0 failed, 11 skipped
 */
class TallyReporter {
  // jest prints its own summary after all reporters.
  onRunComplete(_contexts, results) {
    process.once("exit", () => process.stderr.write(`${linesOf(results).join("\n")}\n`));
  }
}

/** The lines for the results of a run. */
function linesOf(results) {
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests, numTodoTests } = results;
  const failed = numFailedTests + numRuntimeErrorTestSuites;
  return [
    ...[...missing(results)].map(([what, count]) => `${count} skipped, because they need ${what}`),
    `${numPassedTests} passed, ${failed} failed, ${numPendingTests + numTodoTests} skipped`,
  ];
}

/** The number of skipped tests for each thing that they need; needs.ts writes it into their names. */
function missing({ testResults }) {
  const counts = new Map();
  for (const { testResults: tests } of testResults) {
    for (const { status, fullName } of tests) {
      if (status !== "pending") continue;
      const what = /\(needs ([^)]+)\)/.exec(fullName)?.[1] ?? `something that their names do not say: ${fullName}`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
    }
  }
  return counts;
}

module.exports = Object.assign(TallyReporter, { linesOf });
