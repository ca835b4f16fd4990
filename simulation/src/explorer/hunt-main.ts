import {
  ALL_FAULTS,
  CLONE_FAULTS,
  OWN_FAULTS,
  type SimulationOptions,
  simulate,
  simulateBrake,
} from "../health/index.ts";
import { wander } from "./explore.ts";

/**
 * Search for a broken invariant, always with the same seeds and the cheapest searches first. Print the first one and
 * exit with 3, or exit with 0 when there is none. `make mutants` runs this program on each mutated copy.
 */
const MINUTE_MS = 60_000;
const SMALL = { streams: 2, beats: 1, epochs: 3 };
const LARGE = { streams: 4, beats: 3, epochs: 8 };
const CROWD = { streams: 6, beats: 1, epochs: 12 };
const WALKS = 900;
const STEPS = 80;
const SEEDS = 4;
const BRAKE_SEEDS = 6;
const BRAKE_MS = 180 * MINUTE_MS;
const WORLD = { agents: 150, replicas: 3, durationMs: 20 * MINUTE_MS, faultEveryMs: 15_000 };

async function walk(): Promise<string | null> {
  for (let seed = 0; seed < WALKS; seed += 1) {
    const violation = await wander([SMALL, LARGE, CROWD][seed % 3] ?? SMALL, { steps: STEPS, seed });
    if (violation !== null) return `${violation.invariant} (explorer, walk ${seed})`;
  }
  return null;
}

async function simulateSeeds(what: string, options: Omit<SimulationOptions, "seed">): Promise<string | null> {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation, recordedLosses } = await simulate({ ...options, seed });
    if (violation !== null) return `${violation} (simulation, ${what}, seed ${seed})`;
    const isOwn = options.faults === OWN_FAULTS || options.faults === cuts.faults;
    if (isOwn && recordedLosses > 0) {
      return (
        `${recordedLosses} nodes were declared lost because of the control plane's own faults (simulation, ${what}, ` +
        `seed ${seed})`
      );
    }
  }
  return null;
}

async function brake(): Promise<string | null> {
  for (let seed = 1; seed <= BRAKE_SEEDS; seed += 1) {
    const { violation } = await simulateBrake({ seed, durationMs: BRAKE_MS });
    if (violation !== null) return `${violation} (brake, seed ${seed})`;
  }
  return null;
}

/** Faults that stop replicas in the middle of their work. */
const stalls = { faults: ["replica-stop"], faultEveryMs: 4_000, agents: 20 } as const;
/** Faults that stop agents while their replica is cut off. */
const stops = { faults: ["replica-cut-from-record", "agent-stop"], faultEveryMs: 15_000 } as const;
const cuts = { faults: ["replica-cut-from-record"], faultEveryMs: 2 * MINUTE_MS } as const;
const found =
  (await brake()) ??
  (await walk()) ??
  (await simulateSeeds("stalls", { ...WORLD, ...stalls })) ??
  (await simulateSeeds("stops during cuts", { ...WORLD, ...stops })) ??
  (await simulateSeeds("every fault", { ...WORLD, faults: ALL_FAULTS })) ??
  (await simulateSeeds("second agents", { ...WORLD, faults: CLONE_FAULTS })) ??
  (await simulateSeeds("own faults", { ...WORLD, faults: OWN_FAULTS })) ??
  (await simulateSeeds("cuts", { ...WORLD, ...cuts }));
if (found !== null) {
  process.stdout.write(`${found}\n`);
  process.exitCode = 3;
}
