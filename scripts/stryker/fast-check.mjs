// fast-check for mutation tests. It always runs the same few cases and does not shrink.
import fastCheck from "fast-check";

const MOST_RUNS = 30;

function assert(property, options = {}) {
  const numRuns = Math.min(options.numRuns ?? 100, MOST_RUNS);
  return fastCheck.assert(property, { ...options, numRuns, seed: 1, endOnFailure: true });
}

const bounded = { ...fastCheck, assert };
// biome-ignore lint/style/noDefaultExport: what it stands for has one
export default bounded;
