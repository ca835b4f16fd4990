const { default: Sequencer } = require("@jest/test-sequencer");

/**
 * The ends of test paths, starting with the longest test. Without cached times, jest would start with the
 * largest file.
 */
const LONGEST = [
  // Tests of `make acceptance` that take minutes each.
  "/hostile.acceptance.ts",
  "/node-versions.acceptance.ts",
  "/packages.acceptance.ts",
  "/conformance.acceptance.ts",
  "/deployment.acceptance.ts",
  "/java.acceptance.ts",
  "/drills.acceptance.ts",
  "/kits.acceptance.ts",
  "/kit-authorities.acceptance.ts",
  "/first-day.acceptance.ts",
  "/pages.acceptance.ts",
  "/restore-killed.acceptance.ts",
  "/brake-with-work.acceptance.ts",
  "/backup.acceptance.ts",
  "/container.acceptance.ts",
  "/keeper-killed.acceptance.ts",
  "/work.acceptance.ts",
  "/job-table.acceptance.ts",
  "/upgrade.acceptance.ts",
  // Tests of `make test` that take half a minute or more each.
  "/drills/short-broken-agents.test.ts",
  "/drills/short-hostile.test.ts",
  "/drills/short-poisoned-sessions.test.ts",
  "/slow/short-slow-dependencies.test.ts",
  "/rollcall/src/lost-notifications.test.ts",
  "/rollcall/src/tls.test.ts",
  "/rollcall/src/cloned-agent.test.ts",
  "/rollcall/src/work.test.ts",
  "/rollcall/src/work-output.test.ts",
  "/rollcall/src/unwritable-files.test.ts",
  "/work/agent-work.test.ts",
  "/watch/node-robustness.test.ts",
  "/docs/how-to.test.ts",
  "/tests/authority-changes.test.ts",
  "/rollcall/src/up.test.ts",
  "/rollcall/src/up-ends.test.ts",
  "/registry/src/rpc/large-answers.test.ts",
];

function rankOf({ path }) {
  const rank = LONGEST.findIndex((end) => path.endsWith(end));
  return rank < 0 ? LONGEST.length : rank;
}

/** Starts the longest tests first, so that workers do not wait for a single long test at the end. */
class LongestFirst extends Sequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
}

module.exports = LongestFirst;
