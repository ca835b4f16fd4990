import {
  type Execution,
  type ExecutionChange,
  type ExecutionFacts,
  executionEvent,
  executionsPlacedEvents,
  type Job,
  type JobChange,
  type JobChangeReason,
  jobChangedEvent,
  type NewEvent,
  type Plan,
} from "@rollcall/domain";

/**
 * The events of a plan: one for all executions of a job that the plan places, and one for each execution that ends,
 * is lost or is replaced.
 */
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
    case "FREED":
      return null;
    case "REPLACING":
      // `replacedBy` is null if the same plan has restored the execution, which was therefore not replaced.
      return replacedBy === null ? null : executionEvent({ ...change, type: "job.execution.replaced", replacedBy });
    case "RESTORED": {
      const stays = { reason: "EXECUTION_RESTORED", message: `kept instead of ${before?.replacedBy ?? "another"}` };
      return executionEvent({ ...change, ...stays, type: "job.execution.restored" });
    }
    case "LOST":
      return executionEvent({ ...change, type: "job.execution.lost" });
    case "FOUND":
      return executionEvent({ ...change, type: "job.execution.found", reason: "EXECUTION_FOUND" });
    case "ENDED":
      return executionEvent({ ...change, type: "job.execution.ended" });
  }
}

function factsOf({ id, job, nodeId, index, state }: Execution): ExecutionFacts {
  return { id, job, nodeId, index, state };
}

/** The event of a job's change; null if only the human-readable message has changed. */
function jobEvent({ before, after }: JobChange, actor: string): NewEvent | null {
  const reason = jobReason(before, after);
  if (reason === null) return null;
  const { name, message } = after;
  return jobChangedEvent({ name, before, after, reason, actor, message: after.halted ?? message });
}

function jobReason(before: Job, after: Job): JobChangeReason | null {
  if (before.state !== after.state) {
    if (after.state === "COMPLETED") return "JOB_COMPLETED";
    return after.state === "FAILED" ? "JOB_FAILED" : "JOB_UPDATED";
  }
  if (before.halted !== after.halted) return "JOB_UPDATED";
  if (after.rolledOut && !before.rolledOut) return "JOB_ROLLED_OUT";
  return before.waitingNodes === after.waitingNodes ? null : "JOB_WAITING";
}
