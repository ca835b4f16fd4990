import { type ExecutionRecord, executionEvent, type JobSpec, type NewEvent, schedulerActor } from "@rollcall/domain";
import type { StoredExecution, StoredJob } from "@rollcall/store";
import { keptJobOf } from "@rollcall/wire";
import { toObservation } from "../executions/convert-execution.ts";
import { hasPlaces } from "../jobs/view-job.ts";
import type { Commit } from "./find-orphans.ts";
import type { LeaderMemory } from "./leader-memory.ts";
import type { LeaderOptions } from "./leader-options.ts";

const NOTHING = { executions: [], jobs: [], drains: [] } as const;

/**
 * Do what operators ordered of single executions: stop it, or make one that the record did not know its job's own. What
 * follows from that is planned as ever.
 */
export async function seeToOrders(
  memory: LeaderMemory,
  ids: readonly string[],
  commit: Commit,
  { record, instance }: Pick<LeaderOptions, "record" | "instance">,
): Promise<void> {
  for (const stored of await record.getExecutions(ids)) {
    if (stored.order === null) continue;
    const { id } = stored.execution;
    if (stored.order.kind === "ADOPT") {
      await adopt(memory, stored, commit, { record, instance });
      continue;
    }
    const after = stopped(stored);
    const change = { kind: "STOPPING", before: stored.execution, observation: null } as const;
    const plan = after === null ? NOTHING : { ...NOTHING, executions: [{ ...change, after }] };
    const { outcome } = await commit({ plan, events: [], endedOrders: [id] });
    // No job has an orphan: its end is recorded when its node has said so.
    if (outcome === "COMMITTED" && after !== null && !stored.isOrphan) {
      memory.applyRecord(after, toObservation(stored.observation));
    }
  }
}

/** Null for one that has ended or is told so already. */
function stopped({ execution, order }: StoredExecution): ExecutionRecord | null {
  if (execution.endedAtMs !== null || execution.desired !== "RUN") return null;
  return { ...execution, desired: "STOP", reason: "EXECUTION_STOPPED", message: order?.message ?? "" };
}

async function adopt(
  memory: LeaderMemory,
  stored: StoredExecution,
  commit: Commit,
  { record, instance }: Pick<LeaderOptions, "record" | "instance">,
): Promise<void> {
  const { execution, isOrphan, order } = stored;
  const [job] = await record.getJobs([execution.job]);
  // A job that was stopped or scaled to nothing since would end it at once.
  if (!isOrphan || job?.state !== "ACTIVE" || !hasPlaces(job)) {
    await commit({ plan: NOTHING, events: [], endedOrders: [execution.id] });
    return;
  }
  const { spec } = keptJobOf(job);
  const { millicores, memoryBytes, diskBytes } = spec.resources;
  const index = await indexOf(record, job, spec);
  const after: ExecutionRecord = {
    ...execution,
    ...{ version: job.version, run: job.run, index, holds: true, state: "LIVE", reason: "", message: "" },
    grant: { ...execution.grant, millicores, memoryBytes, diskBytes },
  };
  const event: NewEvent = executionEvent({
    type: "job.execution.adopted",
    before: { ...execution, state: "ORPHANED" },
    after,
    reason: "EXECUTION_ADOPTED",
    message: order?.message ?? "",
    actor: schedulerActor(instance),
  });
  const { outcome } = await commit({ plan: NOTHING, events: [event], adopted: [after], endedOrders: [execution.id] });
  if (outcome !== "COMMITTED") return;
  memory.applyRecord(after, toObservation(stored.observation));
}

/** Beyond the count of a job it would be stopped at once. What has its place besides it is stopped as a duplicate. */
function indexOf(record: LeaderOptions["record"], job: StoredJob, { type, checked }: JobSpec): Promise<number> {
  switch (type) {
    case "ops":
    case "daemon":
      return record.freeIndex(job.name);
    case "batch":
    case "service":
      return record.indexToAdopt({ ...job, checked, once: type === "batch" });
  }
}
