import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type JobService,
  PlacementRefusalSchema,
  PlanJobResponseSchema,
  PlannedExecutionSchema,
} from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import type { ExplainedRefusal } from "@rollcall/domain";
import { acceptJob } from "@rollcall/operations";
import { getJob } from "@rollcall/store";
import { isSameJob, jobToText } from "@rollcall/wire";
import type { SchedulerServices } from "../scheduler-services.ts";
import { viewJob } from "./view-job.ts";

/** Say what submitting a job would do. */
export function planJob({ store, nodes }: SchedulerServices): MethodImpl<typeof JobService.method.planJob> {
  return async (request, { signal }) => {
    const { submitted, spec, warnings } = acceptJob(request.spec);
    const before = await getJob(store.db, spec.name);
    const isSame = before !== null && isSameJob(before.spec, jobToText(submitted, spec.count));
    const isOver = before !== null && before.state !== "ACTIVE";
    const viewed = await viewJob(store.db, isOver ? null : before, signal);
    const preview = await nodes.preview(spec, viewed, signal);
    const version = before?.version ?? 0;
    return create(PlanJobResponseSchema, {
      executions: preview.places.map(({ index, nodeId, executionId, isReplaced }) => {
        // What is the same already is left as it is.
        const replaced = isReplaced && !isSame;
        return create(PlannedExecutionSchema, { index, nodeId, executionId: executionId ?? "", replaced });
      }),
      waiting: preview.waiting,
      refusals: refusalsToProto(preview.refusals),
      nodes: preview.nodes,
      version: isSame ? version : version + 1,
      changed: !(isSame && !isOver && before.count === spec.count),
      warnings: [...warnings],
    });
  };
}

/** The public messages of why nodes will not do. */
export function refusalsToProto(refusals: readonly ExplainedRefusal[]) {
  return refusals.map((refusal) => create(PlacementRefusalSchema, refusal));
}
