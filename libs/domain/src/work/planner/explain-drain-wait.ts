import type { OneWait } from "../wait.ts";
import { scheduling, type WaitContext, waitOf } from "./wait-context.ts";
import type { KnownExecution } from "./work-state.ts";

/** Explain what an execution on a draining node waits for; null when its node is not draining. */
export function drainWait(context: WaitContext, live: KnownExecution): OneWait | null {
  const { facts, job } = context;
  const { record } = live;
  const { nodeId } = record;
  const drain = facts.drains.get(nodeId);
  if (drain === undefined) return null;
  const { type, update } = job.record.spec;
  if (type === "daemon" && drain.ignoreDaemons) return null;
  const of = { executionId: record.id, nodeId, sinceMs: drain.startedAtMs, untilMs: drain.deadlineAtMs };
  const now = `rollcall node drain ${nodeId} --force`;
  if (drain.queued) {
    const text = "the drain of its node waits for other nodes of its selection";
    return waitOf({ ...of, reason: "DRAIN_QUEUED", text, command: `rollcall node drain ${nodeId}` });
  }
  const isOver = drain.force || (drain.deadlineAtMs !== null && drain.deadlineAtMs <= facts.nowMs);
  if (isOver) return scheduling(of);
  switch (type) {
    case "batch":
    case "ops": {
      const text = "its node is draining, and it can finish until the deadline of the drain";
      return waitOf({ ...of, reason: "DRAIN_MAY_FINISH", text, command: now });
    }
    case "daemon": {
      const text = "its node is draining, and daemons stop last";
      return waitOf({ ...of, reason: "DRAIN_DAEMON", text, command: now });
    }
    case "service": {
      const refusals = context.refusals();
      if (refusals !== null) {
        const text = `its node is draining, and no other node fits it: ${refusals}; it ends at the deadline`;
        return waitOf({ ...of, reason: "DRAIN_NO_NODE_FITS", text, command: now });
      }
      const pace = `update.maxParallel moves ${update.maxParallel} at a time`;
      const minReady = `each of them has to be ready for ${update.minReadyMs / 1_000} s`;
      const text = `its node is draining, and ${pace}: ${minReady}`;
      return waitOf({ ...of, reason: "DRAIN_PACE", text, command: now });
    }
  }
}
