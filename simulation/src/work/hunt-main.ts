import { simulateWork } from "./simulate-work.ts";

/**
 * Search for a broken invariant of executions, always with the same seeds. If one is found, print it and exit with
 * 3; otherwise exit with 0. `make mutants` runs this program on each mutated copy whose patch concerns executions.
 */
const MINUTE_MS = 60_000;
const SEEDS = 10;
const WORLD = { agents: 40, replicas: 3, durationMs: 40 * MINUTE_MS, faultEveryMs: 8_000 };

for (let seed = 1; seed <= SEEDS && process.exitCode === undefined; seed += 1) {
  const { violation } = await simulateWork({ ...WORLD, seed });
  if (violation === null) continue;
  process.stdout.write(`${violation} (simulation of work, seed ${seed})\n`);
  process.exitCode = 3;
}
