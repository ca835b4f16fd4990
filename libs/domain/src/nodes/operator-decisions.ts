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
import { changeHolds, type NodeEffect, type NodeRefusalReason, type NodeVerdict, refuseNode } from "./node-effects.ts";
import type { NodeRecord } from "./node-record.ts";

/**
 * Decide to keep new work away from a node. A cordon that stands already may get another time at which it ends.
 *
 * @param untilMs when the cordon ends by itself, later than `by.atMs`; null for never.
 */
export function cordon(node: NodeRecord, by: CommandSource, untilMs: number | null = null): NodeVerdict {
  if (node.type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", node.id, "is a control-plane process; no work ever comes to it");
  }
  const present = node.holds.find(({ kind }) => kind === "OPERATOR");
  if (present !== undefined && (present.untilMs ?? null) === untilMs) {
    return refuseNode("NODE_ALREADY_CORDONED", node.id, "already cordoned");
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

/** Decide to lift the holds that operators placed, a drain included; those of other owners stay. */
export function uncordon(node: NodeRecord, by: CommandSource, drain: DrainIntent | null = null): NodeVerdict {
  const holds = liftHold(liftHold(node.holds, "OPERATOR"), "DRAIN");
  if (holds === node.holds) return refuseNode("NODE_NOT_CORDONED", node.id, "is not cordoned");
  const { effects, events } = changeHolds(node, holds, by);
  if (!node.holds.some(({ kind }) => kind === "DRAIN")) return done(effects, events);
  return done([...effects, { kind: "drain", drain: null }], [drainCancelledEvent(node.id, drain, by), ...events]);
}

/** Decide to lift a cordon whose time has passed; null while it has not, and where there is none. */
export function endCordon(node: NodeRecord, nowMs: number): Effects<NodeEffect> | null {
  const hold = node.holds.find(({ kind }) => kind === "OPERATOR");
  if (hold?.untilMs === undefined || hold.untilMs > nowMs) return null;
  const message = `cordoned until ${isoTime(hold.untilMs)}`;
  return changeHolds(node, liftHold(node.holds, "OPERATOR"), { actor: "system", message, atMs: nowMs });
}

/** Decide to show a node as UNHEALTHY, whatever it sends. `by.atMs` is the record's time. */
export function markUnhealthy(node: NodeRecord, by: CommandSource): NodeVerdict {
  const { id, type, detectedHealth, health: before } = node;
  if (type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", id, "is a control-plane process; its connection alone says how it fares");
  }
  if (node.mark !== null) return refuseNode("NODE_ALREADY_MARKED", id, "already marked unhealthy");
  const mark: Mark = { sinceMs: by.atMs, message: by.message, actor: by.actor };
  const event = healthEvent({ subject: id, before, after: effectiveHealth(detectedHealth, mark) });
  const { loss, event: allowed } = lossAfterMark(node, by);
  return done(
    [{ kind: "mark", mark }, ...(loss === node.loss ? [] : [{ kind: "loss", loss } as const])],
    [event, ...(allowed === null ? [] : [allowed])],
  );
}

/** Decide to clear an operator's mark; what was detected shows again. */
export function clearMark(node: NodeRecord, { actor, message }: CommandSource): NodeVerdict {
  const { id, health: before, detectedHealth: after } = node;
  if (node.mark === null) return refuseNode("NODE_NOT_MARKED", id, "is not marked unhealthy");
  // What shows again was detected by a replica, some time ago; that it shows is the operator's doing.
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

/** Decide to have a node replace its key. */
export function requireKeyRotation(node: NodeRecord, { actor, message }: CommandSource): NodeVerdict {
  const { id, keyFingerprint, keyRotationRequiredSinceMs: sinceMs } = node;
  if (keyFingerprint === null) {
    return refuseNode("NODE_IS_ORCHESTRATOR", id, "is a control-plane process; it has no key");
  }
  if (sinceMs !== null) {
    const since = isoTime(sinceMs);
    return refuseNode("KEY_ROTATION_ALREADY_REQUIRED", id, `already told to rotate its key, ${since}`);
  }
  const event = keyRotationRequiredEvent({ subject: id, actor, message, keyFingerprint });
  return done([{ kind: "require-key-rotation" }], [event]);
}

/** Decide to take a node's hardware as it is now for what it should be. */
export function acceptHardware(node: NodeRecord, { actor, message }: CommandSource): NodeVerdict {
  const { id, type, approvedHardware, info } = node;
  if (type === "ORCHESTRATOR") {
    return refuseNode("NODE_IS_ORCHESTRATOR", id, "is a control-plane process; its hardware is not watched");
  }
  const present = hardwareOf(info ?? undefined);
  if (present === null) {
    return refuseNode("NODE_HARDWARE_UNKNOWN", id, "has not said yet what its hardware is");
  }
  const before = approvedHardware === null ? null : hardwareFacts(approvedHardware);
  const after = hardwareFacts(present);
  if (isSameFacts(before, after)) {
    const text = "already has the accepted hardware; nothing is missing and nothing is new";
    return refuseNode("NODE_HARDWARE_UNCHANGED", id, text);
  }
  const event = hardwareAcceptedEvent({ subject: id, actor, message, before, after });
  return done([{ kind: "accept-hardware" }], [event]);
}

/** Decide a change of the labels of the operator's tier. One that is in effect already does nothing. */
export function changeLabels(node: NodeRecord, change: LabelChange, { actor, message }: CommandSource): NodeVerdict {
  const others = labelsOfOthers(node.labels, change);
  if (others.length > 0) return setByOthers(node.id, others);
  const labels = changeOperatorLabels(node.labels, change);
  if (labels.length > MAX_OPERATOR_LABELS) {
    const text =
      `would have ${labels.length} labels from operators; at most ${MAX_OPERATOR_LABELS} are kept, remove some ` +
      "first";
    return refuseNode("INVALID_LABEL", node.id, text);
  }
  const kept = node.labels.filter(({ tier }) => tier !== "operator");
  const event = labelsEvent({
    ...{ subject: node.id, actor, reason: "OPERATOR_LABELED", message },
    before: node.labels,
    after: [...kept, ...labels],
  });
  // An operator's label is always in effect, so where nothing in effect changes, nothing does.
  return event === null ? done([], []) : done([{ kind: "labels", tier: "operator", labels }], [event]);
}

/** Refuse an etag that is not that of the node as it is now; null for one that is, or none. */
export function etagRefusal(node: Pick<NodeRecord, "id" | "etag">, etag: string): Refused<NodeRefusalReason> | null {
  if (etag === "" || etag === node.etag) return null;
  const message = `node ${node.id} has changed since this etag was read; read it again and decide again`;
  return refused("ETAG_MISMATCH", message, { node: node.id, etag: node.etag });
}

function done(effects: readonly NodeEffect[], events: readonly NewEvent[]): NodeVerdict {
  return { ok: true, effects, events };
}

function setByOthers(node: string, labels: readonly Label[]): NodeVerdict {
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

/** Facts are made by one function, so their keys come in one order. */
function isSameFacts(left: Json, right: Json): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
