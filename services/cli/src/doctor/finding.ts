/** What a check came to: "unknown" when it could not be made. */
export type Verdict = "ok" | "warning" | "problem" | "unknown";

/** What one check found about one thing. */
export interface Finding {
  /** Which check, in kebab-case. */
  readonly check: string;
  /** What was looked at: an address, a process, a setting. */
  readonly subject: string;
  readonly verdict: Verdict;
  /** What was found. */
  readonly found: string;
  /** What to do; empty where there is nothing to do. */
  readonly advice: string;
}

/** Nothing to do. */
export function fine(check: string, subject: string, found: string): Finding {
  return { check, subject, verdict: "ok", found, advice: "" };
}

/** Something is not right, or could not be looked at. */
export function finding(
  verdict: Exclude<Verdict, "ok">,
  about: Pick<Finding, "check" | "subject">,
  found: string,
  advice: string,
): Finding {
  return { ...about, verdict, found, advice };
}

/** Two limits of a value: above the first it is a warning, above the second a problem. */
export interface Limits {
  readonly warning: number;
  readonly problem: number;
}

/** Compare a value with its limits. */
function verdictOf(value: number, { warning, problem }: Limits): Exclude<Verdict, "unknown"> {
  if (value > problem) return "problem";
  return value > warning ? "warning" : "ok";
}

/** A finding about a value that has limits. */
export function measured(
  about: Pick<Finding, "check" | "subject">,
  value: number,
  limits: Limits,
  { found, advice }: Pick<Finding, "found" | "advice">,
): Finding {
  const verdict = verdictOf(value, limits);
  return verdict === "ok" ? fine(about.check, about.subject, found) : finding(verdict, about, found, advice);
}

/** The worst of all: a problem, else what could not be checked, else a warning. */
export function worstOf(findings: readonly Finding[]): Verdict {
  const found = (verdict: Verdict) => findings.some((it) => it.verdict === verdict);
  if (found("problem")) return "problem";
  if (found("unknown")) return "unknown";
  return found("warning") ? "warning" : "ok";
}
