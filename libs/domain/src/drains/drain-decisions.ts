import type { Effects } from "../decided.ts";
import { changeHolds, type NodeEffect, type NodeVerdict, refuseNode } from "../nodes/node-effects.ts";
import type { NodeRecord } from "../nodes/node-record.ts";
import { type CommandSource, type Hold, liftHold, placeHold } from "../states.ts";
import {
  type DrainIntent,
  type DrainRequest,
  drainCancelledEvent,
  drainConditions,
  drainStartedEvent,
} from "./drain.ts";

/**
 * Decide to drain a node: no new work comes, and what runs there is moved or ended. A node that drains already, or was
 * drained, drains again: conditions and the reason that are not given stay as they are.
 *
 * @param drain its present drain; null for none.
 * @param selection see DrainIntent; one that is not empty waits for its turn.
 */
export function drainNode(
  node: NodeRecord,
  { request, selection }: { readonly request: DrainRequest; readonly selection: string },
  by: CommandSource,
  drain: DrainIntent | null,
): NodeVerdict {
  if (node.type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", node.id, "is a control-plane process; no work ever comes to it");
  }
  const { actor } = by;
  const message = by.message === "" ? (drain?.reason ?? "") : by.message;
  const isOver = node.holds.some((hold) => hold.kind === "DRAIN" && hold.drained === true);
  // One that has begun goes on, whatever selection it is chosen by now.
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

/** Decide to end a drain, whether it goes on or is done. One that keeps its node ineligible leaves a cordon. */
export function cancelDrain(node: NodeRecord, by: CommandSource, drain: DrainIntent | null): NodeVerdict {
  const lifted = liftHold(node.holds, "DRAIN");
  if (lifted === node.holds) return refuseNode("NODE_NOT_DRAINING", node.id, "is not draining");
  const { actor, atMs } = by;
  const cordoned = lifted.find(({ kind }) => kind === "OPERATOR");
  const message = by.message === "" ? (drain?.reason ?? "") : by.message;
  // A cordon that stands keeps its words, and ends no longer by itself.
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
 * Decide that a drain is over. Null when there is no drain, or when nothing changes.
 *
 * @param isConfirmed whether the node has confirmed the end of all that the drain concerned.
 * @param by the scheduler that found it so.
 */
export function endDrain(node: NodeRecord, isConfirmed: boolean, by: CommandSource): Effects<NodeEffect> | null {
  const hold = node.holds.find(({ kind }) => kind === "DRAIN");
  if (hold === undefined || (hold.drained === true && (hold.unconfirmed !== true || !isConfirmed))) return null;
  const { unconfirmed: _, ...rest } = hold;
  const over: Hold = { ...rest, drained: true, ...(isConfirmed ? {} : { unconfirmed: true }) };
  return changeHolds(node, placeHold(node.holds, over), by);
}

/** A drain of a selection of which some nodes are drained at a time. */
export interface SelectedDrain {
  readonly nodeId: string;
  readonly maxParallel: number;
  readonly queued: boolean;
  /** Whether nothing that it concerned runs any more. */
  readonly drained: boolean;
}

/** Which drains of one selection begin now: some that wait, by their nodes, so that as many go on as may. */
export function drainsThatBegin(drains: readonly SelectedDrain[]): readonly string[] {
  const underWay = drains.filter(({ queued, drained }) => !queued && !drained).length;
  const waiting = drains.filter(({ queued }) => queued).sort((left, right) => (left.nodeId < right.nodeId ? -1 : 1));
  // The least that any of them allows: those that were drained again may have another number.
  const most = Math.min(...waiting.map(({ maxParallel }) => (maxParallel === 0 ? waiting.length : maxParallel)));
  return waiting.slice(0, Math.max(0, most - underWay)).map(({ nodeId }) => nodeId);
}
