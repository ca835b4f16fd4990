import type { FuzzOutcome, FuzzPlan } from "./fuzz.ts";

/** Longer than any run. */
export const LONGEST_MS = 24 * 3_600_000;

/** A seed of `make test`: the same cases each time, so that a change that breaks them is the one that is tested. */
const SEED = 20_26;

/**
 * Which cases this run is to try. `make fuzz` sets FUZZ to "SECONDS SEED CASE": without a seed another one each time;
 * with a case its round up to it. Without FUZZ, a number of cases that is the same each time.
 */
export function fuzzPlan(shortCases: number, round: number): FuzzPlan {
  const words = process.env.FUZZ?.trim().split(/\s+/) ?? [];
  const [seconds, seed = Math.floor(Math.random() * 2 ** 31), one] = words.map(Number);
  if (seconds === undefined) {
    return { seed: SEED, from: 0, until: shortCases, endMs: Number.POSITIVE_INFINITY };
  }
  const endMs = performance.now() + seconds * 1_000;
  if (one === undefined) return { seed, from: 0, until: Number.POSITIVE_INFINITY, endMs };
  return { seed, from: Math.floor(one / round) * round, until: one + 1, endMs: LONGEST_MS };
}

/** Tell what was tried and found, with the words to see it again. */
export function report({ seed }: FuzzPlan, outcome: FuzzOutcome): string {
  const { cases, findings, codes, answered } = outcome;
  const shares = [...codes].sort((a, b) => b[1] - a[1]).map(([code, count]) => `${code}: ${count}`);
  return [
    `${cases} cases of seed ${seed}, ${answered} answered; by status: ${shares.join(", ")}`,
    ...findings.map(
      ({ caseNumber, problem, what }) =>
        `\n  case ${caseNumber}: ${problem}\n    ${what}\n    again: make fuzz ARGS="60 ${seed} ${caseNumber}"`,
    ),
  ].join("\n");
}
