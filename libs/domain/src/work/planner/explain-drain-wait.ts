import type { OneWait } from "../wait.ts";
import { nodeWhy, scheduling, type WaitContext, waitOf } from "./wait-context.ts";
import type { LiveExecution } from "./work-state.ts";

/** Explain what an execution on a draining node waits for; null if its node is not draining. */
export function drainWait(context: WaitContext, live: LiveExecution): OneWait | null {
  const { facts, job } = context;
  const { record } = live;
  const { nodeId } = record;
  const drain = facts.drains.get(nodeId);
  if (drain === undefined) return null;
  const { type, update } = job.record.spec;
  if (type === "daemon" && drain.ignoreDaemons) return null;
  const isLate = drain.deadlineAtMs !== null && drain.deadlineAtMs <= facts.nowMs;
  const untilMs = isLate ? null : drain.deadlineAtMs;
  const of = { executionId: record.id, nodeId, sinceMs: drain.startedAtMs, untilMs };
  const now = `rollcall node drain ${nodeId} --force`;
  if (drain.queued) {
    const text = "the drain of the node waits for other nodes in the same selection";
    return waitOf({ ...of, reason: "DRAIN_QUEUED", text, command: `rollcall node drain ${nodeId}` });
  }
  const isOver = drain.force || isLate;
  if (type === "daemon") {
    const text = "the node is draining; a daemon stops after the other executions there have ended";
    return waitOf({ ...of, reason: "DRAIN_DAEMON", text, command: isOver ? nodeWhy(nodeId) : now });
  }
  if (isOver) return scheduling(of);
  switch (type) {
    case "batch":
    case "ops": {
      const text = "the node is draining; batch and ops executions can run until the deadline of the drain";
      return waitOf({ ...of, reason: "DRAIN_MAY_FINISH", text, command: now });
    }
    case "service": {
      const refusals = context.refusals();
      if (refusals !== null) {
        const text = `the node is draining, and no other node fits: ${refusals}; the execution ends at the deadline`;
        return waitOf({ ...of, reason: "DRAIN_NO_NODE_FITS", text, command: now });
      }
      const pace = `update.maxParallel moves ${update.maxParallel} at a time`;
      const minReady = `each replacement must be ready for ${update.minReadyMs / 1_000} s`;
      const text = `the node is draining, and ${pace}; ${minReady}`;
      return waitOf({ ...of, reason: "DRAIN_PACE", text, command: now });
    }
  }
}
