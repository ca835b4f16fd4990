const { default: Sequencer } = require("@jest/test-sequencer");

/** Minutes each, the longest first. A machine without a cache of times would begin with the longest text instead. */
const LONGEST = [
  "hostile",
  "packages",
  "deployment",
  "drills",
  "conformance",
  "work",
  "container",
  "restore-killed",
  "backup",
  "pages",
  "kits",
  "upgrade",
  "brake-with-work",
  "job-table",
  "java",
  "first-day",
];

function rankOf({ path }) {
  const rank = LONGEST.indexOf(path.replace(/^.*\//, "").replace(".acceptance.ts", ""));
  return rank < 0 ? LONGEST.length : rank;
}

/** Begins with what takes longest, so that one worker does not wait minutes for the other in the end. */
class LongestFirst extends Sequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
}

module.exports = LongestFirst;
