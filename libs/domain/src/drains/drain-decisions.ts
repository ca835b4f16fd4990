import type { Effects } from "../decided.ts";
import type { Node } from "../nodes/node.ts";
import { changeHolds, type NodeDecision, type NodeEffect, refuseNode } from "../nodes/node-effects.ts";
import { type CommandSource, type Hold, liftHold, placeHold } from "../states.ts";
import {
  type DrainIntent,
  type DrainRequest,
  drainCancelledEvent,
  drainConditions,
  drainStartedEvent,
} from "./drain.ts";

/**
 * Decide to drain a node: it gets no new work, and its executions are moved or stopped. A node that is draining or
 * drained can be drained again. Conditions and a reason that the new order omits stay unchanged.
 *
 * @param drain its current drain; null for none.
 * @param selection see DrainIntent; with a selection, the drain may have to wait for other nodes.
 */
export function drainNode(
  node: Node,
  { request, selection }: { readonly request: DrainRequest; readonly selection: string },
  by: CommandSource,
  drain: DrainIntent | null,
): NodeDecision {
  if (node.type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", node.id, "is a control-plane process, which never gets work");
  }
  const { actor } = by;
  const message = by.message === "" ? (drain?.reason ?? "") : by.message;
  const isOver = node.holds.some((hold) => hold.kind === "DRAIN" && hold.drained === true);
  // Continue a drain that has started, even if another selection now includes its node.
  const isUnderWay = drain !== null && !drain.queued && !isOver;
  const queued = selection !== "" && !isUnderWay;
  const conditions = drainConditions(request, drain);
  const after: DrainIntent = { ...conditions, selection, queued, reason: message, actor };
  const holds = placeHold(node.holds, { kind: "DRAIN", sinceMs: by.atMs, message, actor });
  const held: Effects<NodeEffect> =
    holds === node.holds ? { effects: [], events: [] } : changeHolds(node, holds, { ...by, message });
  const reason = "OPERATOR_DRAINED";
  const started = drainStartedEvent({ subject: node.id, before: drain, after, actor, reason, message });
  return {
    ok: true,
    effects: [...held.effects, { kind: "drain", drain: after }],
    events: [started, ...held.events],
  };
}

/**
 * Decide to cancel a drain, whether or not it has completed. With `keepIneligible`, the node is cordoned instead.
 */
export function cancelDrain(node: Node, by: CommandSource, drain: DrainIntent | null): NodeDecision {
  const lifted = liftHold(node.holds, "DRAIN");
  if (lifted === node.holds) return refuseNode("NODE_NOT_DRAINING", node.id, "is not draining");
  const { actor, atMs } = by;
  const cordoned = lifted.find(({ kind }) => kind === "OPERATOR");
  const message = by.message === "" ? (drain?.reason ?? "") : by.message;
  // If the node is already cordoned, keep the cordon's message and actor, but remove its expiry.
  const words = { message: cordoned?.message ?? message, actor: cordoned?.actor ?? actor };
  const cordon: Hold = { kind: "OPERATOR", sinceMs: atMs, ...words };
  const holds = drain?.keepIneligible === true ? placeHold(lifted, cordon) : lifted;
  const { effects, events } = changeHolds(node, holds, by);
  return {
    ok: true,
    effects: [...effects, { kind: "drain", drain: null }],
    events: [drainCancelledEvent(node.id, drain, by), ...events],
  };
}

/**
 * Decide that a drain has finished. Null if the node has no drain, or if nothing changes.
 *
 * @param isConfirmed whether the node has confirmed the end of every execution that the drain covered.
 * @param by the scheduler that found that the drain has finished.
 */
export function endDrain(node: Node, isConfirmed: boolean, by: CommandSource): Effects<NodeEffect> | null {
  const hold = node.holds.find(({ kind }) => kind === "DRAIN");
  if (hold === undefined || (hold.drained === true && (hold.unconfirmed !== true || !isConfirmed))) return null;
  const { unconfirmed: _, ...rest } = hold;
  const over: Hold = { ...rest, drained: true, ...(isConfirmed ? {} : { unconfirmed: true }) };
  return changeHolds(node, placeHold(node.holds, over), by);
}

/** The drain of one node in a selection. Only a limited number of the selection's nodes are drained at a time. */
export interface SelectedDrain {
  readonly nodeId: string;
  readonly maxParallel: number;
  readonly queued: boolean;
  /** Whether all executions that the drain covers have ended. */
  readonly drained: boolean;
}

/** The nodes of one selection whose queued drains can start now without exceeding the limit. */
export function drainsThatBegin(drains: readonly SelectedDrain[]): readonly string[] {
  const underWay = drains.filter(({ queued, drained }) => !queued && !drained).length;
  const waiting = drains.filter(({ queued }) => queued).sort((left, right) => (left.nodeId < right.nodeId ? -1 : 1));
  // Use the lowest limit of all drains, because a drain that was ordered again can have a different limit.
  const most = Math.min(...waiting.map(({ maxParallel }) => (maxParallel === 0 ? waiting.length : maxParallel)));
  return waiting.slice(0, Math.max(0, most - underWay)).map(({ nodeId }) => nodeId);
}
