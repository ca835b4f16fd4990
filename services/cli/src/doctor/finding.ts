/** The result of a check: "unknown" when it could not be made. */
export type Status = "ok" | "warning" | "problem" | "unknown";

/** The result of one check of one subject. */
export interface Finding {
  /** The name of the check, in kebab-case. */
  readonly check: string;
  /** The checked address, process or setting. */
  readonly subject: string;
  readonly status: Status;
  readonly found: string;
  /** What to do; empty when there is nothing to do. */
  readonly advice: string;
}

/** A finding without a problem. */
export function fine(check: string, subject: string, found: string): Finding {
  return { check, subject, status: "ok", found, advice: "" };
}

/** A problem, or a check that could not be made. */
export function finding(
  status: Exclude<Status, "ok">,
  about: Pick<Finding, "check" | "subject">,
  found: string,
  advice: string,
): Finding {
  return { ...about, status, found, advice };
}

/** Two limits of a value. A value above the first is a warning, a value above the second a problem. */
export interface Limits {
  readonly warning: number;
  readonly problem: number;
}

function statusOf(value: number, { warning, problem }: Limits): Exclude<Status, "unknown"> {
  if (value > problem) return "problem";
  return value > warning ? "warning" : "ok";
}

/** A finding about a value with limits. */
export function measured(
  about: Pick<Finding, "check" | "subject">,
  value: number,
  limits: Limits,
  { found, advice }: Pick<Finding, "found" | "advice">,
): Finding {
  const status = statusOf(value, limits);
  return status === "ok" ? fine(about.check, about.subject, found) : finding(status, about, found, advice);
}

/** The worst status: a problem, then a check that could not be made, then a warning. */
export function worstOf(findings: readonly Finding[]): Status {
  const found = (status: Status) => findings.some((it) => it.status === status);
  if (found("problem")) return "problem";
  if (found("unknown")) return "unknown";
  return found("warning") ? "warning" : "ok";
}

/** Group findings by a key, in the order of their first occurrence. */
export function groupFindings(
  findings: readonly Finding[],
  keyOf: (finding: Finding) => string,
): readonly (readonly Finding[])[] {
  const groups = new Map<string, Finding[]>();
  for (const one of findings) {
    const group = groups.get(keyOf(one)) ?? [];
    group.push(one);
    groups.set(keyOf(one), group);
  }
  return [...groups.values()];
}
