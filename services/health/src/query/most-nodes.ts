/**
 * Nodes in one call to a replica, and in one message of a watch. A sample may have 64 GPUs and a node 60 samples of 2
 * KiB, so these fit into a page.
 */
export const MOST_WITH_SAMPLES = 8;
const MOST_WITHOUT_SAMPLES = 128;

/** How many nodes to ask for at a time. */
export function nodesOfOneQuestion(includeSamples: boolean): number {
  return includeSamples ? MOST_WITH_SAMPLES : MOST_WITHOUT_SAMPLES;
}
