import { lossAfterClearedMark, lossAfterMark } from "../brake/reaction.ts";
import { hardwareFacts, hardwareOf } from "../conditions/hardware.ts";
import { hardwareAcceptedEvent } from "../conditions/hardware-conditions.ts";
import { labelsEvent } from "../conditions/info-events.ts";
import type { Effects } from "../decided.ts";
import { type DrainIntent, drainCancelledEvent } from "../drains/drain.ts";
import { healthEvent, type Json, type NewEvent } from "../events/events.ts";
import { isoTime } from "../iso-time.ts";
import { keyRotationRequiredEvent } from "../keys/key-events.ts";
import {
  changeOperatorLabels,
  type Label,
  type LabelChange,
  type LabelTier,
  labelsOfOthers,
  MAX_OPERATOR_LABELS,
} from "../labels/labels.ts";
import { type Refused, refused } from "../refusal.ts";
import { type CommandSource, effectiveHealth, liftHold, type Mark, placeHold } from "../states.ts";
import type { Node } from "./node.ts";
import { changeHolds, type NodeDecision, type NodeEffect, type NodeRefusalReason, refuseNode } from "./node-effects.ts";

/**
 * Decide to cordon a node, so that it gets no new work. Cordoning again can change when the cordon ends.
 *
 * @param untilMs when the cordon ends automatically, later than `by.atMs`; null for never.
 */
export function cordon(node: Node, by: CommandSource, untilMs: number | null = null): NodeDecision {
  if (node.type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", node.id, "is a control-plane process, which never gets work");
  }
  const present = node.holds.find(({ kind }) => kind === "OPERATOR");
  if (present !== undefined && (present.untilMs ?? null) === untilMs) {
    return refuseNode("NODE_ALREADY_CORDONED", node.id, "is already cordoned");
  }
  const { actor, message, atMs } = by;
  const until = untilMs === null ? {} : { untilMs };
  const { effects, events } = changeHolds(
    node,
    placeHold(node.holds, { kind: "OPERATOR", sinceMs: atMs, message, actor, ...until }),
    by,
  );
  return done(effects, events);
}

/** Decide to remove the holds that operators placed: the cordon and the drain. Holds that other components own stay. */
export function uncordon(node: Node, by: CommandSource, drain: DrainIntent | null): NodeDecision {
  const holds = liftHold(liftHold(node.holds, "OPERATOR"), "DRAIN");
  if (holds === node.holds) return refuseNode("NODE_NOT_CORDONED", node.id, "is not cordoned");
  const { effects, events } = changeHolds(node, holds, by);
  if (!node.holds.some(({ kind }) => kind === "DRAIN")) return done(effects, events);
  return done([...effects, { kind: "drain", drain: null }], [drainCancelledEvent(node.id, drain, by), ...events]);
}

/** Decide to lift an expired cordon; null if the node has no expired cordon. */
export function endCordon(node: Node, nowMs: number): Effects<NodeEffect> | null {
  const hold = node.holds.find(({ kind }) => kind === "OPERATOR");
  if (hold?.untilMs === undefined || hold.untilMs > nowMs) return null;
  const message = `cordoned until ${isoTime(hold.untilMs)}`;
  return changeHolds(node, liftHold(node.holds, "OPERATOR"), { actor: "system", message, atMs: nowMs });
}

/** Decide to mark a node as UNHEALTHY, whatever it sends. `by.atMs` is the store's time. */
export function markUnhealthy(node: Node, by: CommandSource): NodeDecision {
  const { id, type, detectedHealth, health: before } = node;
  if (type === "ORCHESTRATOR") {
    return refuseNode(
      "NODE_IS_ORCHESTRATOR",
      id,
      "is a control-plane process; its health depends only on its connection",
    );
  }
  if (node.mark !== null) return refuseNode("NODE_ALREADY_MARKED", id, "is already marked unhealthy");
  const mark: Mark = { sinceMs: by.atMs, message: by.message, actor: by.actor };
  const event = healthEvent({ subject: id, before, after: effectiveHealth(detectedHealth, mark) });
  const { loss, event: allowed } = lossAfterMark(node, by);
  return done(
    [{ kind: "mark", mark }, ...(loss === node.loss ? [] : [{ kind: "loss", loss } as const])],
    [event, ...(allowed === null ? [] : [allowed])],
  );
}

/** Decide to clear an operator's mark, so that the detected health is shown again. */
export function clearMark(node: Node, { actor, message }: CommandSource): NodeDecision {
  const { id, health: before, detectedHealth: after } = node;
  if (node.mark === null) return refuseNode("NODE_NOT_MARKED", id, "is not marked unhealthy");
  // The actor is the operator, who made the detected health visible again, and not the replica that detected it.
  const event: NewEvent = {
    ...healthEvent({ subject: id, before, after }),
    ...{ actor, message, reason: "OPERATOR_MARK_CLEARED" },
  };
  const loss = lossAfterClearedMark(node.loss, after.state);
  return done(
    [{ kind: "mark", mark: null }, ...(loss === node.loss ? [] : [{ kind: "loss", loss } as const])],
    [event],
  );
}

/** Decide to require a node to rotate its key. */
export function requireKeyRotation(node: Node, { actor, message }: CommandSource): NodeDecision {
  const { id, keyFingerprint, keyRotationRequiredSinceMs: sinceMs } = node;
  if (keyFingerprint === null) {
    return refuseNode("NODE_IS_ORCHESTRATOR", id, "is a control-plane process; it has no key");
  }
  if (sinceMs !== null) {
    const since = isoTime(sinceMs);
    return refuseNode("KEY_ROTATION_ALREADY_REQUIRED", id, `was already asked to rotate its key at ${since}`);
  }
  const event = keyRotationRequiredEvent({ subject: id, actor, message, keyFingerprint });
  return done([{ kind: "require-key-rotation" }], [event]);
}

/** Decide to approve a node's current hardware. */
export function acceptHardware(node: Node, { actor, message }: CommandSource): NodeDecision {
  const { id, type, approvedHardware, info } = node;
  if (type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", id, "is a control-plane process; its hardware is not monitored");
  }
  const present = hardwareOf(info ?? undefined);
  if (present === null) {
    return refuseNode("NODE_HARDWARE_UNKNOWN", id, "has not reported its hardware yet");
  }
  const before = approvedHardware === null ? null : hardwareFacts(approvedHardware);
  const after = hardwareFacts(present);
  if (isSameFacts(before, after)) {
    const text = "already has the accepted hardware; nothing is missing or new";
    return refuseNode("NODE_HARDWARE_UNCHANGED", id, text);
  }
  const event = hardwareAcceptedEvent({ subject: id, actor, message, before, after });
  return done([{ kind: "accept-hardware" }], [event]);
}

/** Decide to change the labels that operators gave a node. A change that makes no difference has no effects. */
export function changeLabels(node: Node, change: LabelChange, { actor, message }: CommandSource): NodeDecision {
  const others = labelsOfOthers(node.labels, change);
  if (others.length > 0) return setByOthers(node.id, others);
  const labels = changeOperatorLabels(node.labels, change);
  if (labels.length > MAX_OPERATOR_LABELS) {
    const text =
      `would have ${labels.length} labels from operators; the limit is ${MAX_OPERATOR_LABELS}, so remove some ` +
      "first";
    return refuseNode("INVALID_LABEL", node.id, text);
  }
  const kept = node.labels.filter(({ tier }) => tier !== "operator");
  const event = labelsEvent({
    ...{ subject: node.id, actor, reason: "OPERATOR_LABELED", message },
    before: node.labels,
    after: [...kept, ...labels],
  });
  // An operator's label is always effective. So if no effective label changes, the operators' labels do not change
  // either.
  return event === null ? done([], []) : done([{ kind: "labels", tier: "operator", labels }], [event]);
}

/** Refuse an etag that differs from the node's etag. Null if the etag is the same or empty. */
export function etagRefusal(node: Pick<Node, "id" | "etag">, etag: string): Refused<NodeRefusalReason> | null {
  if (etag === "" || etag === node.etag) return null;
  const message = `node ${node.id} has changed since this etag was read; read it again and retry`;
  return refused("ETAG_MISMATCH", message, { node: node.id, etag: node.etag });
}

function done(effects: readonly NodeEffect[], events: readonly NewEvent[]): NodeDecision {
  return { ok: true, effects, events };
}

function setByOthers(node: string, labels: readonly Label[]): NodeDecision {
  const named = labels.map(({ key, value, tier }) => `${key}=${value} from ${SOURCES[tier]}`);
  const keys = labels.map(({ key }) => key);
  const message =
    `node ${node} has ${named.join(", ")}, and only labels that operators set can be removed; set another value ` +
    "to override it";
  const metadata = { node, labels: keys.join(","), tiers: labels.map(({ tier }) => tier).join(",") };
  return refused("LABEL_NOT_SET_BY_OPERATOR", message, metadata);
}

const SOURCES: Readonly<Record<LabelTier, string>> = {
  agent: "the node itself",
  token: "its join token",
  operator: "an operator",
};

/** Compare JSON text. This is enough, because one function builds both values with the same order of keys. */
function isSameFacts(left: Json, right: Json): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
