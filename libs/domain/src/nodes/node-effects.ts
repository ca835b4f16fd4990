import type { LossAfter } from "../brake/reaction.ts";
import type { Trouble } from "../conditions/hardware-conditions.ts";
import type { Decided, Effects } from "../decided.ts";
import type { DrainIntent } from "../drains/drain.ts";
import { schedulingEvent } from "../events/events.ts";
import type { OutageHistory } from "../health/flapping.ts";
import type { Label, LabelTier } from "../labels/labels.ts";
import type { NewBan } from "../membership/ban.ts";
import { type RefusalReason, type Refused, refused } from "../refusal.ts";
import {
  type CommandSource,
  type Connection,
  deriveScheduling,
  type Health,
  type Hold,
  type Mark,
  type Membership,
} from "../states.ts";
import type { NodeJoining, NodeRecord } from "./node-record.ts";

/** What to write about one node, whose row is locked. Each kind says all that is written for it. */
export type NodeEffect =
  /** Since when it holds is the record's clock. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** What the node last reported counts as the hardware that it should have, and none of it as missing. */
  | { readonly kind: "accept-hardware" }
  | { readonly kind: "holds"; readonly holds: readonly Hold[] }
  /** The node's drain, in place of the one before; null for none any more. */
  | { readonly kind: "drain"; readonly drain: DrainIntent | null }
  /** Since when it stands is the record's clock. */
  | { readonly kind: "mark"; readonly mark: Mark | null }
  /** The row of the node's session is locked. */
  | { readonly kind: "loss"; readonly loss: LossAfter }
  /** There is nothing to react to any more, whatever the loss is by now. */
  | { readonly kind: "drop-loss" }
  /** The row of the node's session is locked. */
  | { readonly kind: "outages"; readonly history: OutageHistory }
  | { readonly kind: "gpu-troubles"; readonly troubles: readonly Trouble[] }
  /** What was suspected is an unexpected reboot. */
  | { readonly kind: "rebooted" }
  /** An unexpected reboot is not shown any more. */
  | { readonly kind: "reboot-over" }
  /** All labels of one tier. */
  | { readonly kind: "labels"; readonly tier: LabelTier; readonly labels: readonly Label[] }
  | { readonly kind: "joining"; readonly joining: NodeJoining }
  | { readonly kind: "require-key-rotation" }
  /** Registrations are held off. */
  | { readonly kind: "place-bans"; readonly bans: readonly NewBan[] }
  | { readonly kind: "lift-bans"; readonly ids: readonly bigint[] }
  /** The node goes and leaves a tombstone. */
  | { readonly kind: "removal"; readonly removal: Removal };

/** Who removed a node, and why. */
export interface Removal {
  readonly actor: string;
  /** Machine-readable; best that of the event of the same transaction. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message?: string;
}

/** What the record holds of a node's session beyond who holds it. */
export interface SessionStates {
  readonly connection: Connection;
  /** As detected, without an operator's mark. */
  readonly health: Health;
  readonly history: OutageHistory;
  readonly loss: LossAfter;
}

/** What a decision about one node does, or why it does nothing. */
export type NodeVerdict = Decided<NodeEffect, NodeRefusalReason>;

/** Why a decision about a node is refused. */
export type NodeRefusalReason =
  | RefusalReason
  | "NODE_ALREADY_CORDONED"
  | "NODE_NOT_CORDONED"
  | "NODE_ALREADY_MARKED"
  | "NODE_NOT_MARKED"
  | "NODE_HARDWARE_UNKNOWN"
  | "NODE_HARDWARE_UNCHANGED"
  | "KEY_ROTATION_ALREADY_REQUIRED"
  | "INVALID_LABEL"
  | "LABEL_NOT_SET_BY_OPERATOR"
  | "NODE_NOT_DRAINING"
  | "ETAG_MISMATCH";

/** A refusal whose message begins with the node; `text` goes on from there. */
export function refuseNode(reason: NodeRefusalReason, node: string, text: string): Refused<NodeRefusalReason> {
  return refused(reason, `node ${node} ${text}`, { node });
}

/** The change of a node's holds, with its event. */
export function changeHolds(
  node: Pick<NodeRecord, "id" | "scheduling">,
  holds: readonly Hold[],
  { actor, message, atMs }: CommandSource,
): Effects<NodeEffect> {
  const after = deriveScheduling(holds, atMs);
  const event = schedulingEvent({ subject: node.id, before: node.scheduling, after, actor, message });
  return { effects: [{ kind: "holds", holds }], events: [event] };
}
