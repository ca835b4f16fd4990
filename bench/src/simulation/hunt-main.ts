import { simulateWork } from "./simulate-work.ts";

/**
 * Search for a broken invariant of work, always with the same seeds. Prints it and exits with 3, or exits with 0 when
 * there is none. `make mutants` runs it on each mutated copy whose patch touches work.
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
