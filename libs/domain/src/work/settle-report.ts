import type { Desired, Observation, Observed } from "./execution.ts";

/** An execution of a node as the record has it. */
export interface RecordedExecution {
  readonly desired: Desired;
  /** What was observed last; null for nothing. */
  readonly observed: Observed | null;
}

/** An execution as a node reports it. */
export interface ReportedExecution {
  readonly id: string;
  readonly observed: Observed;
}

/** What follows from a report. */
export interface SettledReport {
  /** How many whole reports in a row lacked each execution that the record expects; those that are there are left out. */
  readonly misses: ReadonlyMap<string, number>;
  /** Executions that are not there: they are observed as ended, see goneObservation(). */
  readonly gone: readonly string[];
  /** Executions that the record does not know: they are shown, and run on. */
  readonly orphans: readonly string[];
  /** Executions that run although the record has their end: they are to be told to stop again. */
  readonly revived: readonly string[];
}

/** Whole reports in a row that lack an execution before it counts as gone: one may have been made before it began. */
const REPORTS_TO_BE_GONE = 2;

/**
 * Compare what a node reports of its executions with what the record has of them.
 *
 * @param recorded all executions of the node that the record has.
 * @param misses as the report before left them; empty for the first report of a session.
 */
export function settleReport(
  recorded: ReadonlyMap<string, RecordedExecution>,
  misses: ReadonlyMap<string, number>,
  report: { readonly isWhole: boolean; readonly executions: readonly ReportedExecution[] },
): SettledReport {
  const orphans: string[] = [];
  const revived: string[] = [];
  for (const { id, observed } of report.executions) {
    const known = recorded.get(id);
    if (known === undefined) orphans.push(id);
    else if (known.desired === "FORGET" && observed !== "ENDED") revived.push(id);
  }
  const there = new Set(report.executions.map(({ id }) => id));
  if (!report.isWhole) {
    const left = [...misses].filter(([id]) => !there.has(id) && recorded.has(id));
    return { misses: new Map(left), gone: [], orphans, revived };
  }
  const after = new Map<string, number>();
  const gone: string[] = [];
  for (const [id, execution] of recorded) {
    if (there.has(id) || !isExpected(execution)) continue;
    const count = (misses.get(id) ?? 0) + 1;
    if (count >= REPORTS_TO_BE_GONE) gone.push(id);
    else after.set(id, count);
  }
  return { misses: after, gone, orphans, revived };
}

/** What is written of an execution that its node no longer has. */
export function goneObservation(
  before: Observation | null,
  by: { readonly epoch: number; readonly report: number },
): Observation {
  const message = "two reports of its node lack it";
  const { startedAtMs = null } = before ?? {};
  return {
    ...{ observed: "ENDED", ...by, startedAtMs, endedAtMs: null, end: "GONE", exitCode: null, signal: null, message },
  };
}

/** One that is to run and was never seen may not have begun; one that is to stop is settled by not being there. */
function isExpected({ desired, observed }: RecordedExecution): boolean {
  if (observed === "ENDED" || desired === "FORGET") return false;
  return desired === "STOP" || observed !== null;
}
