import { BRAKE_CLUSTER } from "../../brake/brake.ts";
import type { Loss } from "../../brake/reaction.ts";
import { stateWords } from "../../state-words.ts";
import type { OneWait } from "../wait.ts";
import { nodeWhy, scheduling, type WaitContext, waitOf } from "./wait-context.ts";
import type { LiveExecution } from "./work-state.ts";

/** Explain what an execution on a lost node waits for; null if the node is healthy and still has the execution. */
export function lossWait(context: WaitContext, live: LiveExecution): OneWait | null {
  const { state, facts } = context;
  const { record } = live;
  const node = state.pool.get(record.nodeId)?.node;
  const loss = facts.losses.get(record.nodeId);
  const isWell = node?.health === "HEALTHY";
  if (record.state === "LOST") return recordedLoss(context, live, isWell, loss);
  if (isWell) return null;
  const of = { executionId: record.id, nodeId: record.nodeId, sinceMs: loss?.sinceMs ?? null };
  if (node === undefined || node.reactionAllowed) return scheduling(of);
  if (loss?.reaction === "PENDING") return pendingReaction(context, of, loss);
  const text = `its node is ${stateWords(node.health)}, which does not count as a loss yet`;
  return waitOf({ ...of, reason: "NODE_LOST", text, command: nodeWhy(record.nodeId) });
}

/** Explain a reaction that waits for the brake. */
function pendingReaction(
  { facts }: WaitContext,
  of: Pick<OneWait, "executionId" | "nodeId" | "sinceMs">,
  { group }: Loss,
): OneWait {
  const own = facts.brakes.find((brake) => brake.group === (group || BRAKE_CLUSTER));
  const cluster = facts.brakes.find((brake) => brake.group === BRAKE_CLUSTER);
  const brake = own?.rate?.isByCluster === true ? cluster : (own ?? cluster);
  const rate = own?.rate ?? cluster?.rate ?? null;
  if (brake === undefined || rate === null) {
    const text = "its node is lost, and the brake has not allowed reactions to the loss yet";
    return waitOf({ ...of, reason: "NODE_LOST", text, command: "rollcall brake status" });
  }
  const name = brake.group === BRAKE_CLUSTER ? "the cluster" : brake.group;
  const isReleasing = rate.perMinute > 0;
  const pace = isReleasing ? `it releases ${rate.perMinute} a minute` : "it releases none";
  const text = `its node is lost, and the brake of ${name} is ${stateWords(brake.state)}: ${pace}`;
  const pending = Math.max(1, brake.pending);
  const untilMs = isReleasing ? facts.nowMs + Math.round(pending * rate.intervalMs) : null;
  const option = brake.group === BRAKE_CLUSTER ? "" : ` --group ${brake.group}`;
  return waitOf({ ...of, reason: "BRAKE_HOLDS", text, untilMs, command: `rollcall brake release --now${option}` });
}

/**
 * Explain a loss that the scheduler has recorded. The job's policy decides whether and when the execution is
 * replaced.
 */
function recordedLoss(
  context: WaitContext,
  { record }: LiveExecution,
  isWell: boolean,
  loss: Loss | undefined,
): OneWait {
  const { job, facts, state } = context;
  const { spec } = job.record;
  const isGone = record.reason === "GONE";
  const of = { executionId: record.id, nodeId: record.nodeId, sinceMs: record.lostAtMs };
  const what = isGone ? "its node no longer has it" : "its node is lost";
  // Suggest stopping the execution of a service, because the scheduler then replaces it.
  const command = spec.type === "service" ? `rollcall job stop --execution ${record.id}` : nodeWhy(record.nodeId);
  if (spec.type === "daemon" && !isGone) {
    const text = `${what}, and a daemon stays with its node`;
    return waitOf({ ...of, reason: "LOST_KEPT", text, command });
  }
  if (spec.type !== "daemon" && !spec.loss.replace) {
    const text = `${what}, and the job's loss.replace is false: it waits for its node to return`;
    return waitOf({ ...of, reason: "LOST_KEPT", text, command });
  }
  const dueAtMs = (record.lostAtMs ?? facts.nowMs) + (isGone ? 0 : spec.loss.lostAfterMs);
  if (facts.nowMs < dueAtMs) {
    const text = `${what}, and the job's loss.lostAfter of ${spec.loss.lostAfterMs / 1_000} s has not passed`;
    return waitOf({ ...of, reason: "LOST_AFTER", text, untilMs: dueAtMs, command });
  }
  const isAllowed = isGone || state.pool.get(record.nodeId)?.node.reactionAllowed === true;
  if (!isAllowed && loss?.reaction === "PENDING") return pendingReaction(context, of, loss);
  const refusals = isAllowed ? context.refusals() : null;
  if (refusals === null || isWell) return scheduling(of);
  const text = `${what}, and no other node fits: ${refusals}`;
  return waitOf({ ...of, reason: "NO_NODE_FITS", text, command: "rollcall node list --show work" });
}
