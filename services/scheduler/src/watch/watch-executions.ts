import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { type JobService, WatchExecutionsResponseSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { type ExecutionFilter, type ExecutionRow, readExecutions } from "@rollcall/store";
import { executionToProto } from "../executions/convert-execution.ts";
import type { SchedulerServices } from "../scheduler-services.ts";
import { PendingChanges } from "./pending-changes.ts";

/** The maximum number of executions in one message, well below what clients accept. */
const EXECUTIONS_A_MESSAGE = 200;
const MOST_PENDING = 20_000;
/** Time between two messages without executions, which prove that the stream works. */
const BOOKMARK_MS = 10_000;

/** Send the current executions, and then their changes. */
export function watchExecutions({
  store,
  hub,
  clock,
}: SchedulerServices): MethodImpl<typeof JobService.method.watchExecutions> {
  return async function* ({ job, nodeId }, { signal }) {
    const filter: ExecutionFilter = { ...(job === "" ? {} : { job }), ...(nodeId === "" ? {} : { nodeId }) };
    const pending = new PendingChanges<ExecutionRow>(clock, MOST_PENDING);
    const leave = await hub.join((executions) => {
      for (const found of executions) if (isWanted(found, filter)) pending.put(found.execution.id, found);
    }, signal);
    try {
      let below: string | null = null;
      for (;;) {
        const page = { below, limit: EXECUTIONS_A_MESSAGE, filter };
        const rows: readonly ExecutionRow[] = await hub.read(signal, () => readExecutions(store.db, page));
        const isLast = rows.length < EXECUTIONS_A_MESSAGE;
        yield message(rows, isLast);
        if (isLast) break;
        below = rows.at(-1)?.execution.id ?? null;
      }
      for (;;) {
        const changed = await pending.take(BOOKMARK_MS, signal);
        for (let from = 0; from === 0 || from < changed.length; from += EXECUTIONS_A_MESSAGE) {
          yield message(changed.slice(from, from + EXECUTIONS_A_MESSAGE), false);
        }
      }
    } finally {
      leave();
    }
  };
}

function isWanted({ execution }: ExecutionRow, { job, nodeId }: ExecutionFilter): boolean {
  return (job === undefined || execution.job === job) && (nodeId === undefined || execution.nodeId === nodeId);
}

function message(executions: readonly ExecutionRow[], snapshotDone: boolean) {
  return create(WatchExecutionsResponseSchema, { executions: executions.map(executionToProto), snapshotDone });
}
