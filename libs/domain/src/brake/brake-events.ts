import type { NewEvent } from "../events/events.ts";
import { type BrakeCounts, type BrakeState, toldCounts } from "./brake.ts";

/** Why a reaction was allowed. */
export type AllowedReason = "NO_STORM" | "BRAKE_PACED" | "OPERATOR_RELEASED" | "AGENT_SHUTDOWN" | "OPERATOR_MARKED";

/**
 * The event that permits reactions to the loss of a node. Consumers must not react to any other event.
 *
 * @param allowed `group` is "" for a node without a group; `lostSinceMs` is wall time.
 */
export function reactionsAllowedEvent(allowed: {
  readonly subject: string;
  readonly group: string;
  readonly brake: BrakeState;
  readonly lostSinceMs: number;
  readonly reason: AllowedReason;
  readonly actor: string;
  readonly message: string;
}): NewEvent {
  const { subject, group, brake, lostSinceMs, reason, actor, message } = allowed;
  return {
    type: "node.reactions.allowed",
    subject,
    actor,
    reason,
    message,
    before: null,
    after: group === "" ? { brake, lostSinceMs } : { group, brake, lostSinceMs },
  };
}

/** Why a brake changed. */
export type BrakeReason = "MASS_LOSS" | "RECOVERED" | "OPERATOR_FROZEN" | "OPERATOR_RELEASED";

/** The event of a brake that was set, lifted or frozen. The event's subject is the group. */
export function brakeEvent(change: {
  readonly group: string;
  readonly before: BrakeState;
  readonly after: BrakeState;
  readonly reason: BrakeReason;
  readonly actor: string;
  readonly message: string;
  /** The counts of the group; null if an operator changed the brake, because no nodes were counted. */
  readonly counts: BrakeCounts | null;
}): NewEvent {
  const { group, before, after, reason, actor, message, counts } = change;
  const facts = counts === null ? {} : { ...toldCounts(counts) };
  return {
    type: "brake.changed",
    subject: group,
    actor,
    reason,
    message,
    before: { brake: before },
    after: { brake: after, ...facts },
  };
}

/** The counts of a group in words. */
export function brakeCountsText(counts: BrakeCounts): string {
  const { size, silent, lost } = toldCounts(counts);
  return `of ${size} nodes, ${silent} are silent and ${lost} are lost`;
}
