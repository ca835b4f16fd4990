import { stateWords } from "../../state-words.ts";
import type { OneWait } from "../wait.ts";
import { nodeWhy, type WaitContext, waitOf } from "./wait-context.ts";
import type { LiveExecution } from "./work-state.ts";

/** Explain what an execution that was ordered to stop waits for. */
export function stoppingWait({ state, job, facts }: WaitContext, { record }: LiveExecution): OneWait {
  const { id, nodeId, reason } = record;
  const node = state.pool.get(nodeId)?.node;
  const of = { reason: "STOPPING", executionId: id, nodeId } as const;
  const asked = `it was asked to stop (${stateWords(reason)})`;
  const orderedAtMs = facts.stopsOrderedAtMs.get(id) ?? null;
  if (node === undefined || node.health !== "HEALTHY" || node.connection !== "CONNECTED") {
    const lost = "its node is away; its resources are freed once the node confirms the end or is deleted";
    const sinceMs = orderedAtMs ?? facts.losses.get(nodeId)?.sinceMs ?? null;
    return waitOf({
      ...of,
      text: `${asked}, and ${lost}`,
      sinceMs,
      command: nodeWhy(nodeId),
    });
  }
  const { version, sameVersions } = job.record;
  if (record.version !== version && !(sameVersions ?? []).includes(record.version)) {
    // The grace period is that of the execution's own version, which is not known here.
    const text = `${asked}, and has the grace period of version ${record.version} to stop`;
    return waitOf({ ...of, text, sinceMs: orderedAtMs, command: nodeWhy(nodeId) });
  }
  const { stopGraceMs } = job.record.spec;
  const graceText = `${stopGraceMs / 1_000} s to stop`;
  const killedAtMs = orderedAtMs === null ? null : orderedAtMs + stopGraceMs;
  if (killedAtMs !== null && killedAtMs <= facts.nowMs) {
    const late = `its ${graceText} are over, but its node has not reported the end`;
    const text = `${asked}; ${late}`;
    return waitOf({ ...of, text, sinceMs: orderedAtMs, command: nodeWhy(nodeId) });
  }
  const text = `${asked}, and has ${graceText}`;
  return waitOf({ ...of, text, sinceMs: orderedAtMs, untilMs: killedAtMs });
}
