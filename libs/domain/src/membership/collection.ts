import type { NewEvent } from "../events/events.ts";
import type { Removal } from "../nodes/node-effects.ts";
import type { Connection, Health, Membership, NodeType } from "../states.ts";
import { membershipEvent } from "./membership-events.ts";

/** How long to keep absent nodes, in milliseconds. */
export interface CollectionSettings {
  /**
   * How long to keep nodes that are not ephemeral, counted from when the node became both DISCONNECTED and UNKNOWN;
   * null to keep them forever.
   */
  readonly collectAfterMs: number | null;
  /** How long to keep ephemeral nodes, counted from when the node became DISCONNECTED. */
  readonly ephemeralAfterMs: number;
  /** How long to keep ephemeral nodes that said goodbye; at most `ephemeralAfterMs`. */
  readonly goodbyeAfterMs: number;
}

/** The facts that decide whether to keep a node. The Node of the store has these fields, except `ephemeral`. */
export interface CollectableNode {
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The effective health. A node that an operator has marked is UNHEALTHY, so it is kept. */
  readonly health: Health;
  readonly ephemeral: boolean;
}

/** Why a node is deleted, for machines and for people. */
export interface CollectionReason {
  readonly reason: "COLLECTED" | "EPHEMERAL_LEFT";
  readonly message: string;
}

/** The deletion of an absent node. */
export interface Collection {
  readonly removal: Removal;
  readonly event: NewEvent;
}

/**
 * The longest time, in milliseconds, that the control plane must have been reachable before it deletes absent nodes.
 * For a node with a shorter limit, it must have been reachable for that limit.
 */
const LONGEST_PROOF_MS = 15 * 60_000;

/**
 * Decide whether to delete an absent node; null to keep it. A rejected or banned node is always kept, because its row
 * prevents it from registering again.
 *
 * @param time `nowMs` is on the same clock as the times of the states. `servedForMs` is how long nodes have been able
 *   to reach the control plane without interruption. An outage of the control plane must not delete nodes.
 */
export function decideCollection(
  node: CollectableNode,
  settings: CollectionSettings,
  time: { readonly nowMs: number; readonly servedForMs: number },
): CollectionReason | null {
  const { connection, health } = node;
  if (node.type !== "COMPUTE" || node.membership.state === "REJECTED") return null;
  if (connection.state === "CONNECTED") return null;
  const isOver = (sinceMs: number, limitMs: number) =>
    time.nowMs - sinceMs >= limitMs && time.servedForMs >= Math.min(limitMs, LONGEST_PROOF_MS);
  if (node.ephemeral) {
    const hasLeft = connection.reason === "AGENT_SHUTDOWN";
    const limitMs = hasLeft ? settings.goodbyeAfterMs : settings.ephemeralAfterMs;
    if (isOver(connection.sinceMs, limitMs)) {
      const message = hasLeft ? "ephemeral, and its agent shut down" : "ephemeral, and did not come back";
      return { reason: "EPHEMERAL_LEFT", message };
    }
  }
  const { collectAfterMs } = settings;
  if (collectAfterMs === null || health.state !== "UNKNOWN") return null;
  const goneSinceMs = Math.max(connection.sinceMs, health.sinceMs);
  if (!isOver(goneSinceMs, collectAfterMs)) return null;
  return { reason: "COLLECTED", message: "disconnected for longer than the configured time" };
}

/** The effects of deleting an absent node. */
export function collected(
  { id: subject, membership: before }: { readonly id: string; readonly membership: Membership },
  why: { readonly reason: string; readonly message: string },
): Collection {
  const removal = { actor: "system", ...why };
  return { removal, event: membershipEvent({ type: "node.deleted", subject, before, after: null, ...removal }) };
}
