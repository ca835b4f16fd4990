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
import type { Node, NodeJoining } from "./node.ts";

/**
 * A change to write for one node, whose row is locked. The comment of a kind names other rows that are written
 * or locked.
 */
export type NodeEffect =
  /** The node's new membership. The store sets `sinceMs` by its own clock. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** Approve the hardware that the node last reported, and clear its missing hardware. */
  | { readonly kind: "accept-hardware" }
  | { readonly kind: "holds"; readonly holds: readonly Hold[] }
  /** The node's new drain; null to remove it. */
  | { readonly kind: "drain"; readonly drain: DrainIntent | null }
  /** An operator's new mark; null to clear it. The store sets `sinceMs` by its own clock. */
  | { readonly kind: "mark"; readonly mark: Mark | null }
  /** The node's new loss. The row of the node's session is locked. */
  | { readonly kind: "loss"; readonly loss: LossAfter }
  /** Remove the loss and its reaction, whatever their current values. */
  | { readonly kind: "drop-loss" }
  /** The node's new outages. The row of the node's session is locked. */
  | { readonly kind: "outages"; readonly history: OutageHistory }
  | { readonly kind: "gpu-troubles"; readonly troubles: readonly Trouble[] }
  /** Record the suspected reboot as an unexpected reboot. */
  | { readonly kind: "rebooted" }
  /** Stop showing an unexpected reboot. */
  | { readonly kind: "reboot-over" }
  /** Replace all labels of one tier. */
  | { readonly kind: "labels"; readonly tier: LabelTier; readonly labels: readonly Label[] }
  | { readonly kind: "joining"; readonly joining: NodeJoining }
  | { readonly kind: "require-key-rotation" }
  /** Registrations are blocked. */
  | { readonly kind: "place-bans"; readonly bans: readonly NewBan[] }
  | { readonly kind: "lift-bans"; readonly ids: readonly bigint[] }
  /** Delete the node and leave a tombstone. */
  | { readonly kind: "removal"; readonly removal: Removal };

/** Who deleted a node, and why. */
export interface Removal {
  readonly actor: string;
  /** The reason, for machines. Usually the same as in the event of the transaction. */
  readonly reason: string;
  /** The message for people; may be empty. */
  readonly message?: string;
}

/** The states of a node's session in the store. */
export interface SessionStates {
  readonly connection: Connection;
  /** The detected health, without an operator's mark. */
  readonly health: Health;
  readonly history: OutageHistory;
  readonly loss: LossAfter;
}

/** The effects of a decision about one node, or why it was refused. */
export type NodeDecision = Decided<NodeEffect, NodeRefusalReason>;

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

/** A refusal whose message is the node's name followed by `text`. */
export function refuseNode(reason: NodeRefusalReason, node: string, text: string): Refused<NodeRefusalReason> {
  return refused(reason, `node ${node} ${text}`, { node });
}

/** Change a node's holds. Returns the change with its event. */
export function changeHolds(
  node: Pick<Node, "id" | "scheduling">,
  holds: readonly Hold[],
  { actor, message, atMs }: CommandSource,
): Effects<NodeEffect> {
  const after = deriveScheduling(holds, atMs);
  const event = schedulingEvent({ subject: node.id, before: node.scheduling, after, actor, message });
  return { effects: [{ kind: "holds", holds }], events: [event] };
}
