import { membershipEvent, type NewEvent } from "../events/events.ts";
import type { Removal } from "../nodes/node-effects.ts";
import type { Connection, Health, Membership, NodeType } from "../states.ts";

/** How long nodes that are gone are kept, in milliseconds. */
export interface CollectionSettings {
  /** From when a node was DISCONNECTED and UNKNOWN; null: for ever. */
  readonly collectAfterMs: number | null;
  /** From when an ephemeral node was DISCONNECTED. */
  readonly ephemeralAfterMs: number;
  /** The same for one that said goodbye; not longer than `ephemeralAfterMs`. */
  readonly goodbyeAfterMs: number;
}

/** What is known of a node when it is decided whether to keep it. The store's NodeRecord, with `ephemeral`, is one. */
export interface CollectableNode {
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** The effective one: a node that an operator marked is UNHEALTHY, and kept. */
  readonly health: Health;
  readonly ephemeral: boolean;
}

/** Why a node is removed, for machines and for people. */
export interface CollectionReason {
  readonly reason: "COLLECTED" | "EPHEMERAL_LEFT";
  readonly message: string;
}

/** A node that is removed without a command. */
export interface Collection {
  readonly removal: Removal;
  readonly event: NewEvent;
}

/** The longest time for which the control plane must have been reachable before it takes silence for absence. */
const LONGEST_PROOF_MS = 15 * 60_000;

/**
 * Decide whether a node is gone for good; null keeps it. A node that was rejected or banned is kept whatever happens:
 * its row is what keeps it out.
 *
 * @param time `nowMs` of the clock that dated the states; `servedForMs` says how long nodes could have come back
 *   without a pause, so that trouble of the control plane removes no node.
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
      const message = hasLeft ? "ephemeral, and said goodbye" : "ephemeral, and did not come back";
      return { reason: "EPHEMERAL_LEFT", message };
    }
  }
  const { collectAfterMs } = settings;
  if (collectAfterMs === null || health.state !== "UNKNOWN") return null;
  const goneSinceMs = Math.max(connection.sinceMs, health.sinceMs);
  if (!isOver(goneSinceMs, collectAfterMs)) return null;
  return { reason: "COLLECTED", message: "gone for longer than nodes are kept" };
}

/** What follows from the decision that a node is gone for good. */
export function collected(
  { id: subject, membership: before }: { readonly id: string; readonly membership: Membership },
  why: { readonly reason: string; readonly message: string },
): Collection {
  const removal = { actor: "system", ...why };
  return { removal, event: membershipEvent({ type: "node.deleted", subject, before, after: null, ...removal }) };
}
