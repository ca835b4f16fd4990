import type { NewEvent } from "../events/events.ts";
import type { HealthState, MembershipState, NodeType } from "../states.ts";
import { type AllowedReason, reactionsAllowedEvent } from "./brake-events.ts";

/**
 * Whether others may react to a node that is not HEALTHY: not yet, because the brake may hold it back, or they may. A
 * node that is HEALTHY has none.
 */
export type Reaction = "PENDING" | "ALLOWED";

/** What the record holds of a node's loss and of the reaction to it. */
export interface Loss {
  readonly reaction: Reaction | null;
  /** The place of the loss in the order of all losses; null for a node that does not count as lost. */
  readonly number: number | null;
  /** The node's group of the brake when it was lost; null without a number. */
  readonly group: string | null;
  /** Since when there is something to react to; null when there is nothing. Wall time of the record. */
  readonly sinceMs: number | null;
}

/** A loss to save. */
export interface LossAfter extends Omit<Loss, "number"> {
  /** "next": the record gives it the next number. */
  readonly number: number | "next" | null;
}

/** The loss of a node that has none. */
export const NO_LOSS: Loss = { reaction: null, number: null, group: null, sinceMs: null };

/** What happens to a loss, and the event that allows the reaction if this does. */
export interface LossChange {
  readonly loss: LossAfter;
  readonly event: NewEvent | null;
}

/** Whether a node may have a reaction: only an approved compute node is given work. */
export function mayHaveReaction(node: {
  readonly type: NodeType;
  readonly membership: { readonly state: MembershipState };
}): boolean {
  return node.type === "COMPUTE" && node.membership.state === "APPROVED";
}

/** What a change of detected health does to a node's reaction. */
export type ReactionStep =
  /** The node fell silent: a loss, which waits for the brake. */
  | "lost"
  /** It left by its own will, so nothing is in doubt. */
  | "left"
  /** It is back. */
  | "back";

/**
 * Return what a change of detected health does to a node's reaction; null for nothing. What was allowed stays allowed
 * until the node is shown as HEALTHY: it gets no work before, so there is nothing more to react to.
 */
export function reactionStep(
  before: { readonly detected: HealthState; readonly reaction: Reaction | null },
  after: { readonly state: HealthState; readonly reason: string },
): ReactionStep | null {
  if (after.state === "HEALTHY") return before.detected === "HEALTHY" ? null : "back";
  if (before.reaction === "ALLOWED") return null;
  // One that has not been HEALTHY since its last reaction has nothing that could be reacted to.
  if (before.detected !== "HEALTHY" && before.reaction === null) return null;
  if (after.reason === "AGENT_SHUTDOWN") return "left";
  return before.reaction === null ? "lost" : null;
}

/** A node whose detected health was observed, before and after. */
export interface ObservedLoss {
  readonly nodeId: string;
  readonly before: { readonly detected: HealthState; readonly loss: Loss };
  /** What was detected; null when health was not observed. */
  readonly detected: {
    readonly state: HealthState;
    readonly reason: string;
    readonly message: string;
    readonly actor: string;
  } | null;
  /** Whether the node is shown as HEALTHY from now on, without a mark. */
  readonly isShownHealthy: boolean;
  /** See mayHaveReaction(). Not read for a node that is back. */
  readonly mayHaveReaction: boolean;
  /** The node's group of the brake; "" for none. */
  readonly group: string;
  readonly nowMs: number;
}

/** Decide what an observation makes of a loss. The same object when nothing changes. */
export function lossAfterObservation(observed: ObservedLoss): LossChange {
  const { before, detected, isShownHealthy, group, nowMs } = observed;
  // A node that is shown as HEALTHY has no reaction left.
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
      // Under a mark others do not see it HEALTHY: what was allowed stays so.
      if (reaction === null && before.loss.number === null) return unchanged;
      return {
        loss: { ...NO_LOSS, reaction: reaction === "PENDING" ? null : reaction, sinceMs: lostSinceMs },
        event: null,
      };
  }
}

/**
 * Decide what an operator's mark makes of a loss: the reaction is allowed, unless it was before. The brake holds
 * nothing back that an operator declares.
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

/** Decide what is left of a loss when a mark is cleared: a node that was detected to be HEALTHY has no reaction. */
export function lossAfterClearedMark(loss: Loss, detected: HealthState): Loss {
  if (detected !== "HEALTHY" || (loss.reaction === null && loss.sinceMs === null)) return loss;
  return { ...loss, reaction: null, sinceMs: null };
}

/**
 * Decide a pending reaction that the brake releases. One of a node that is not approved any more is
 * dropped: the decision against the node was written while the loss was.
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
