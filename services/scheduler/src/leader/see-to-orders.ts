import { adoptedIndex, type Execution, executionEvent, type NewEvent, schedulerActor } from "@rollcall/domain";
import type { ExecutionRow } from "@rollcall/store";
import { recheckedJobOf } from "@rollcall/wire";
import { toObservation } from "../executions/convert-execution.ts";
import { hasPlaces } from "../jobs/view-job.ts";
import type { Commit } from "./find-orphans.ts";
import type { LeaderMemory } from "./leader-memory.ts";
import type { LeaderOptions } from "./leader-options.ts";

const NOTHING = { executions: [], jobs: [], drains: [] } as const;

/**
 * Carry out operators' orders about single executions: stop an execution, or adopt an orphan into its job. The next
 * plan handles the consequences.
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
    // Do not apply the order to an orphan. It is not in memory, because it belongs to no job, and its end is stored
    // when its node reports it.
    if (outcome === "COMMITTED" && after !== null && !stored.isOrphan) {
      memory.applyRecord(after, toObservation(stored.observation));
    }
  }
}

/** The execution after the order; null if it has ended or is already stopping. */
function stopped({ execution, order }: ExecutionRow): Execution | null {
  if (execution.endedAtMs !== null || execution.desired !== "RUN") return null;
  return { ...execution, desired: "STOP", reason: "EXECUTION_STOPPED", message: order?.message ?? "" };
}

async function adopt(
  memory: LeaderMemory,
  stored: ExecutionRow,
  commit: Commit,
  { record, instance }: Pick<LeaderOptions, "record" | "instance">,
): Promise<void> {
  const { execution, isOrphan, order } = stored;
  const [job] = await record.getJobs([execution.job]);
  // Adopt the execution only if its job is active and wants executions. Otherwise, the job would end the execution
  // immediately.
  if (!isOrphan || job?.state !== "ACTIVE" || !hasPlaces(job)) {
    await commit({ plan: NOTHING, events: [], endedOrders: [execution.id] });
    return;
  }
  const { spec } = recheckedJobOf(job);
  const { millicores, memoryBytes, diskBytes } = spec.resources;
  const executions = (await record.readExecutionsOfJob(job.name))
    .filter((row) => !row.isOrphan)
    .map((row) => ({ record: row.execution, observed: toObservation(row.observation)?.observed ?? null }));
  const index = adoptedIndex({ ...job, spec }, executions);
  const after: Execution = {
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
