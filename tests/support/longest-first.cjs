const { default: Sequencer } = require("@jest/test-sequencer");

/** Ends of paths, the longest first. A machine without a cache of times would begin with the longest text instead. */
const LONGEST = [
  // Of `make acceptance`: minutes each.
  "/hostile.acceptance.ts",
  "/node-versions.acceptance.ts",
  "/packages.acceptance.ts",
  "/conformance.acceptance.ts",
  "/deployment.acceptance.ts",
  "/java.acceptance.ts",
  "/drills.acceptance.ts",
  "/kits.acceptance.ts",
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
  // Of `make test`: half a minute each, and more.
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
  "/rollcall/src/up.test.ts",
  "/rollcall/src/up-ends.test.ts",
  "/registry/src/rpc/large-answers.test.ts",
];

function rankOf({ path }) {
  const rank = LONGEST.findIndex((end) => path.endsWith(end));
  return rank < 0 ? LONGEST.length : rank;
}

/** Begins with what takes longest, so that one worker does not wait for the other in the end. */
class LongestFirst extends Sequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
}

module.exports = LongestFirst;
