import type { NewEvent } from "../events/events.ts";
import type { HealthState, MembershipState, NodeType } from "../states.ts";
import { type AllowedReason, reactionsAllowedEvent } from "./brake-events.ts";

/**
 * Whether consumers of events can react to a node that is not HEALTHY: PENDING while the brake may hold the
 * reaction back, then ALLOWED. A HEALTHY node has no reaction.
 */
export type Reaction = "PENDING" | "ALLOWED";

/** A node's loss, and the reaction to it, as stored. */
export interface Loss {
  readonly reaction: Reaction | null;
  /** The loss's number in the order of all losses; null for a node that does not count as lost. */
  readonly number: number | null;
  /** The node's brake group when it was lost; null if `number` is null. */
  readonly group: string | null;
  /** When the loss began; null if there is nothing to react to. Wall time of the store. */
  readonly sinceMs: number | null;
}

/** A loss to save. */
export interface LossAfter extends Omit<Loss, "number"> {
  /** The loss's number; "next" if the store must assign the next number. */
  readonly number: number | "next" | null;
}

/** The value for a node without a loss. */
export const NO_LOSS: Loss = { reaction: null, number: null, group: null, sinceMs: null };

/** A change to a loss, and the event that allows the reaction, if any. */
export interface LossChange {
  readonly loss: LossAfter;
  readonly event: NewEvent | null;
}

/** Whether a node can have a reaction: only approved compute nodes get work. */
export function mayHaveReaction(node: {
  readonly type: NodeType;
  readonly membership: { readonly state: MembershipState };
}): boolean {
  return node.type === "COMPUTE" && node.membership.state === "APPROVED";
}

/** The effect of a change in detected health on a node's reaction. */
export type ReactionStep =
  /** The node went silent. The reaction waits for the brake. */
  | "lost"
  /** The node left on purpose, so the reaction does not wait. */
  | "left"
  /** The node has returned. */
  | "back";

/**
 * Return the effect of a change in detected health on a node's reaction; null for none. An allowed reaction stays
 * allowed until the node is shown as HEALTHY. The node gets no work before that, so it needs no second reaction.
 */
export function reactionStep(
  before: { readonly detected: HealthState; readonly reaction: Reaction | null },
  after: { readonly state: HealthState; readonly reason: string },
): ReactionStep | null {
  if (after.state === "HEALTHY") return before.detected === "HEALTHY" ? null : "back";
  if (before.reaction === "ALLOWED") return null;
  // Do nothing for a node that has not been HEALTHY since its last reaction: it has been given no work, so there
  // is nothing to react to.
  if (before.detected !== "HEALTHY" && before.reaction === null) return null;
  if (after.reason === "AGENT_SHUTDOWN") return "left";
  return before.reaction === null ? "lost" : null;
}

/** A node before and after an observation of its health. */
export interface ObservedLoss {
  readonly nodeId: string;
  readonly before: { readonly detected: HealthState; readonly loss: Loss };
  /** The detected health; null if health was not observed. */
  readonly detected: {
    readonly state: HealthState;
    readonly reason: string;
    readonly message: string;
    readonly actor: string;
  } | null;
  /** Whether the node is now shown as HEALTHY, that is, without an operator's mark. */
  readonly isShownHealthy: boolean;
  /** The result of mayHaveReaction(). Ignored for a node that has returned. */
  readonly mayHaveReaction: boolean;
  /** The node's brake group; "" for none. */
  readonly group: string;
  readonly nowMs: number;
}

/** Apply an observation to a loss. Returns the same object if nothing changes. */
export function lossAfterObservation(observed: ObservedLoss): LossChange {
  const { before, detected, isShownHealthy, group, nowMs } = observed;
  // Remove the loss, because a node that is shown as HEALTHY has no reaction.
  if (isShownHealthy) return { loss: hasLoss(before.loss) ? NO_LOSS : before.loss, event: null };
  const unchanged: LossChange = { loss: before.loss, event: null };
  if (detected === null) return unchanged;
  const { reaction, sinceMs } = before.loss;
  const lostSinceMs = sinceMs ?? nowMs;
  switch (reactionStep({ detected: before.detected, reaction }, detected)) {
    case null:
      return unchanged;
    case "lost":
      if (!observed.mayHaveReaction) return unchanged;
      return { loss: { reaction: "PENDING", number: "next", group, sinceMs: lostSinceMs }, event: null };
    case "left": {
      if (!observed.mayHaveReaction) return unchanged;
      const { actor, message } = detected;
      const why = { reason: "AGENT_SHUTDOWN", actor, message } as const;
      const event = allowedEvent(observed.nodeId, { group, lostSinceMs }, why);
      return { loss: { ...NO_LOSS, reaction: "ALLOWED", sinceMs: lostSinceMs }, event };
    }
    case "back":
      // Keep an allowed reaction: the node is marked, so others do not see it as HEALTHY yet.
      if (reaction === null && before.loss.number === null) return unchanged;
      return {
        loss: { ...NO_LOSS, reaction: reaction === "PENDING" ? null : reaction, sinceMs: lostSinceMs },
        event: null,
      };
  }
}

/**
 * Apply an operator's mark to a loss. The mark allows the reaction, unless it is already allowed: the brake does
 * not hold back what an operator declares.
 */
export function lossAfterMark(
  node: { readonly id: string; readonly type: NodeType; readonly loss: Loss } & {
    readonly membership: { readonly state: MembershipState };
  },
  by: { readonly actor: string; readonly message: string; readonly atMs: number },
): LossChange {
  const { loss } = node;
  if (loss.reaction === "ALLOWED" || !mayHaveReaction(node)) return { loss, event: null };
  const sinceMs = loss.sinceMs ?? by.atMs;
  const { actor, message } = by;
  const allowed = { group: loss.group ?? "", lostSinceMs: sinceMs };
  const event = allowedEvent(node.id, allowed, { reason: "OPERATOR_MARKED", actor, message });
  return { loss: { ...loss, reaction: "ALLOWED", sinceMs }, event };
}

/** Clear a mark from a loss. A node that was detected as HEALTHY has no reaction afterwards. */
export function lossAfterClearedMark(loss: Loss, detected: HealthState): Loss {
  if (detected !== "HEALTHY" || (loss.reaction === null && loss.sinceMs === null)) return loss;
  return { ...loss, reaction: null, sinceMs: null };
}

/**
 * Release a pending reaction from the brake. If an operator changed the node's membership during the loss and the
 * node is no longer approved, drop its reaction.
 */
export function lossAfterRelease(loss: Loss, mayReact: boolean): Loss {
  return mayReact ? { ...loss, reaction: "ALLOWED" } : NO_LOSS;
}

function hasLoss({ reaction, number, group, sinceMs }: Loss): boolean {
  return reaction !== null || number !== null || group !== null || sinceMs !== null;
}

function allowedEvent(
  subject: string,
  loss: { readonly group: string; readonly lostSinceMs: number },
  why: { readonly reason: AllowedReason; readonly actor: string; readonly message: string },
): NewEvent {
  return reactionsAllowedEvent({ subject, brake: "NORMAL", ...loss, ...why });
}
