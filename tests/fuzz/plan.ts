import type { FuzzOutcome, FuzzPlan } from "./fuzz.ts";

/** The time limit of a run that ends after a number of cases. It is longer than any run takes. */
export const LONGEST_MS = 24 * 3_600_000;

/**
 * The seed of `make test`. It runs the same cases each time, so that any failure is caused by the change under
 * test.
 */
const SEED = 20_26;

/**
 * Return the cases of this run. `make fuzz` sets FUZZ to "SECONDS SEED CASE". Without a seed, the seed is random.
 * With a case, its round runs up to that case. Without FUZZ, a fixed number of cases runs, the same ones each
 * time.
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

/** Report the cases and findings, with the command to reproduce them. */
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
