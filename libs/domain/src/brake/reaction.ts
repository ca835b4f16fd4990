import type { HealthState } from "../states.ts";

/**
 * Whether others may react to a node that is not HEALTHY: not yet, because the brake may hold it back, or they may. A
 * node that is HEALTHY has none.
 */
export type Reaction = "PENDING" | "ALLOWED";

/** What a change of detected health does to a node's reaction. */
export type ReactionStep =
  /** The node fell silent: a loss, which waits for the brake's word. */
  | "lost"
  /** It left by its own will, so nothing is in doubt. */
  | "left"
  /** It is back. */
  | "back";

/**
 * Tell what a change of detected health does to a node's reaction; null for nothing. What was allowed stays allowed
 * until the node is HEALTHY for everybody: it gets no work before, so there is nothing more to react to.
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
