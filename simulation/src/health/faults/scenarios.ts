import type { SimulationResult } from "../simulation.ts";
import { ALL_FAULTS, CLONE_FAULTS, OWN_FAULTS, type SimulationOptions } from "../simulation-options.ts";

const MINUTE_MS = 60_000;
const WORLD = { agents: 100, replicas: 3, durationMs: 20 * MINUTE_MS, faultEveryMs: 12_000 };

/** A fault plan, with what the session protocol promises under it. */
export interface Scenario {
  /** The promise, as the end of a sentence that begins with "should". */
  readonly promise: string;
  readonly options: Omit<SimulationOptions, "seed">;
  /** Whether a node may be declared lost, in addition to the invariants, which always hold. */
  readonly mayLoseNodes: boolean;
  /** The minimum number of faults. With fewer, the run proves nothing. */
  readonly minFaults: number;
}

/** The fault plans that every seed must pass. */
export const SCENARIOS: readonly Scenario[] = [
  {
    promise: "keep every invariant under every fault",
    options: { ...WORLD, faults: ALL_FAULTS },
    mayLoseNodes: true,
    minFaults: 50,
  },
  {
    promise: "detect second agents, and not take one agent for two",
    options: { ...WORLD, faults: CLONE_FAULTS, faultEveryMs: 6_000 },
    mayLoseNodes: true,
    minFaults: 100,
  },
  {
    promise: "declare no node because of the control plane's own faults",
    options: { ...WORLD, faults: OWN_FAULTS },
    mayLoseNodes: false,
    minFaults: 50,
  },
  {
    // Each failover is over before the next cut begins; see docs/session-protocol.md.
    promise: "declare no node while one replica at a time is cut off",
    options: {
      ...WORLD,
      faults: ["replica-cut-from-record"],
      durationMs: 40 * MINUTE_MS,
      faultEveryMs: MINUTE_MS,
      betweenCutsMs: MINUTE_MS,
    },
    mayLoseNodes: false,
    minFaults: 6,
  },
];

/** How a run breaks the promise of its scenario, or null. */
export function brokenPromise(scenario: Scenario, result: SimulationResult): string | null {
  if (result.violation !== null) return result.violation;
  // Do not count declarations in memory, because a replica can declare a node before it has read that another replica
  // took the node.
  if (!scenario.mayLoseNodes && result.recordedLosses > 0) return `${result.recordedLosses} nodes were declared lost`;
  return result.faults < scenario.minFaults ? `only ${result.faults} faults` : null;
}
