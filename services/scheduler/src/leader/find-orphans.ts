import { type ExecutionChange, executionEvent, type NewEvent, schedulerActor, settleGone } from "@rollcall/domain";
import type { ChangePosition, WorkCommit, WorkCommitted } from "@rollcall/store";
import type { LeaderOptions } from "./leader-options.ts";
import type { OrphanNews } from "./orphan-news.ts";

const ORPHANS_A_COMMIT = 500;
const NOTHING = { executions: [], jobs: [], drains: [] } as const;

/** Commits changes for the leader. */
export type Commit = (commit: Omit<WorkCommit, "instance" | "jobOf" | "specDigestOf">) => Promise<WorkCommitted>;

/**
 * Publish executions that nodes run but the store does not know. They keep running until an operator decides. Their
 * number is limited where reports are saved.
 *
 * @param position read the reports since this position; null to read all.
 */
export async function findOrphans(
  { position, nowMs }: { readonly position: ChangePosition | null; readonly nowMs: number },
  news: OrphanNews,
  commit: Commit,
  { record, log }: Pick<LeaderOptions, "record" | "log">,
): Promise<void> {
  const late = news.add([], nowMs);
  if (late.length > 0) await commit({ plan: NOTHING, events: late });
  for (let after = ""; ; ) {
    const unknown = await record.readUnknownExecutions({ position, after, limit: ORPHANS_A_COMMIT });
    const last = unknown.at(-1);
    if (last === undefined) return;
    log.warn({ executions: unknown.length }, "nodes run executions that the store does not know");
    const orphans = unknown.map(({ specDigest, observed: _, ...orphan }) => ({
      ...orphan,
      specDigest: specDigest ?? Buffer.alloc(0),
    }));
    await commit({ plan: NOTHING, orphans, events: news.add(unknown, nowMs) });
    if (unknown.length < ORPHANS_A_COMMIT) return;
    after = last.id;
  }
}

/** Record the orphans of deleted and rejected nodes as ended, because no node can confirm their end. */
export async function endHomeless(
  nowMs: number,
  commit: Commit,
  { record, instance }: Pick<LeaderOptions, "record" | "instance">,
): Promise<void> {
  for (let after = ""; ; ) {
    const homeless = await record.readHomelessOrphans({ after, limit: ORPHANS_A_COMMIT });
    const last = homeless.at(-1);
    if (last === undefined) return;
    const executions = homeless.map(({ execution: before, type, isDeleted }): ExecutionChange => {
      const end = settleGone(before, type ?? "service", isDeleted ? "NODE_DELETED" : "NODE_REJECTED");
      // Record that the execution must be stopped if the node comes back with it.
      return {
        kind: "ENDED",
        before,
        after: { ...before, ...end, desired: "STOP", endedAtMs: nowMs },
        observation: null,
      };
    });
    await commit({ plan: { ...NOTHING, executions }, events: orphanEndEvents(executions, instance) });
    if (homeless.length < ORPHANS_A_COMMIT) return;
    after = last.execution.id;
  }
}

/** The events of orphans that have ended. */
export function orphanEndEvents(changes: readonly ExecutionChange[], instance: string): readonly NewEvent[] {
  return changes.flatMap(({ kind, before, after }) => {
    if (kind !== "ENDED" || before === null) return [];
    const { reason, message } = after;
    return executionEvent({
      ...{ type: "job.execution.ended", before: { ...before, state: "ORPHANED" }, after, reason, message },
      actor: schedulerActor(instance),
    });
  });
}
