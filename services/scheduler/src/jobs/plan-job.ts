import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type JobService,
  PlacementRefusalSchema,
  PlanJobResponseSchema,
  PlannedExecutionSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type Db, getJob, readExecutions, type StoredExecution } from "@rollcall/store";
import type { SchedulerServices } from "../scheduler-services.ts";
import { refusalText } from "./job-refusals.ts";
import { isSameJob, jobToText } from "./job-text.ts";
import type { NodeRefusal } from "./node-view.ts";
import { acceptJob } from "./submit-job.ts";

const MOST_SHOWN = 1_000;
const EXECUTIONS_A_READ = 1_000;

/** Say what submitting a job would do. */
export function planJob({ store, nodes }: SchedulerServices): MethodImpl<typeof JobService.method.planJob> {
  return async (request, { signal }) => {
    const { spec, warnings } = acceptJob(request.spec);
    if (request.spec === undefined) throw new Error("a job without a spec was accepted");
    const before = await getJob(store.db, spec.name);
    const text = jobToText(request.spec, spec.count);
    const isSame = before !== null && isSameJob(before.spec, text);
    const isOver = before !== null && before.state !== "ACTIVE";
    const kept = isOver ? [] : await presentExecutions(store.db, spec.name, signal);
    const present = kept.map(({ execution }) => execution);
    const outlook = await nodes.outlook({ spec, present }, signal);
    const executions = [
      ...present.map(({ index, nodeId, id }) => ({ index, nodeId, executionId: id, replaced: !isSame })),
      ...outlook.placed,
    ];
    executions.sort((one, other) => one.index - other.index);
    const version = before?.version ?? 0;
    return create(PlanJobResponseSchema, {
      executions: executions.slice(0, MOST_SHOWN).map((one) => create(PlannedExecutionSchema, one)),
      waiting: outlook.waiting,
      refusals: refusalsToProto(outlook.refusals),
      nodes: outlook.nodes,
      version: isSame ? version : version + 1,
      changed: !(isSame && !isOver && before.count === spec.count),
      warnings: [...warnings],
    });
  };
}

/** The public messages of why nodes will not do. */
export function refusalsToProto(refusals: readonly NodeRefusal[]) {
  return refusals.map(({ reason, nodes }) =>
    create(PlacementRefusalSchema, { reason, message: refusalText(reason), nodes }),
  );
}

/** Executions of a job that should run. */
export async function presentExecutions(db: Db, job: string, signal: AbortSignal): Promise<readonly StoredExecution[]> {
  const present: StoredExecution[] = [];
  let below: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const rows: readonly StoredExecution[] = await readExecutions(db, {
      ...{ below, limit: EXECUTIONS_A_READ, filter: { job } },
    });
    present.push(...rows.filter(isPresent));
    const last = rows.at(-1);
    if (last === undefined || rows.length < EXECUTIONS_A_READ) return present;
    below = last.execution.id;
  }
}

function isPresent({ execution: { desired, endedAtMs }, isOrphan }: StoredExecution): boolean {
  return desired === "RUN" && endedAtMs === null && !isOrphan;
}
