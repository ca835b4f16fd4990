import {
  type ExecutionChange,
  type ExecutionFacts,
  type ExecutionRecord,
  executionEvent,
  executionsPlacedEvents,
  type JobChange,
  type JobChangeReason,
  type JobRecord,
  jobChangedEvent,
  type NewEvent,
  type Plan,
} from "@rollcall/domain";

/** The events of a plan: one for what it places of each job, one for each execution that ends, is lost or replaced. */
export function planEvents({ executions, jobs }: Pick<Plan, "executions" | "jobs">, actor: string): NewEvent[] {
  const placed = new Map<string, string[]>();
  for (const { kind, after } of executions) {
    if (kind !== "PLACED") continue;
    const ids = placed.get(after.job);
    if (ids === undefined) placed.set(after.job, [after.id]);
    else ids.push(after.id);
  }
  return [
    ...[...placed].flatMap(([job, ids]) => executionsPlacedEvents(job, ids, actor)),
    ...executions.flatMap((change) => changeEvent(change, actor) ?? []),
    ...jobs.flatMap((change) => jobEvent(change, actor) ?? []),
  ];
}

function changeEvent({ kind, before, after }: ExecutionChange, actor: string): NewEvent | null {
  const { reason, message, replacedBy } = after;
  const change = { before: before === null ? null : factsOf(before), after: factsOf(after), reason, message, actor };
  switch (kind) {
    case "PLACED":
    case "STOPPING":
    case "RESTORED":
    case "FREED":
      return null;
    case "REPLACING": {
      const by = replacedBy === null ? {} : { replacedBy };
      return executionEvent({ ...change, type: "job.execution.replaced", ...by });
    }
    case "LOST":
      return executionEvent({ ...change, type: "job.execution.lost" });
    case "FOUND":
      return executionEvent({ ...change, type: "job.execution.found", reason: "EXECUTION_FOUND" });
    case "ENDED":
      return executionEvent({ ...change, type: "job.execution.ended" });
  }
}

function factsOf({ id, job, nodeId, index, state }: ExecutionRecord): ExecutionFacts {
  return { id, job, nodeId, index, state };
}

/** Null for what changes for people alone. */
function jobEvent({ before, after }: JobChange, actor: string): NewEvent | null {
  const reason = jobReason(before, after);
  if (reason === null) return null;
  const { name, message } = after;
  return jobChangedEvent({ name, before, after, reason, actor, message: after.halted ?? message });
}

function jobReason(before: JobRecord, after: JobRecord): JobChangeReason | null {
  if (before.state !== after.state) {
    if (after.state === "COMPLETED") return "JOB_COMPLETED";
    return after.state === "FAILED" ? "JOB_FAILED" : "JOB_UPDATED";
  }
  return before.halted === after.halted ? null : "JOB_UPDATED";
}
