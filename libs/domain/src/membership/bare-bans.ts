import type { Decided } from "../decided.ts";
import { banEvent } from "../events/events.ts";
import { type NodeRefusalReason, refuseNode } from "../nodes/node-effects.ts";
import type { CommandSource } from "../states.ts";
import { type Ban, isBanned, type NewBan } from "./ban.ts";
import type { NodeMember } from "./membership.ts";

/**
 * Decide a ban on an id or a key that no node has; its subject is the one that is named.
 *
 * @param earlier the bans on it.
 */
export function banInAdvance(
  name: Pick<NewBan, "nodeId" | "fingerprint">,
  earlier: readonly Ban[],
  { actor, message }: CommandSource,
): Decided<NewBan, NodeRefusalReason> {
  const subject = name.nodeId ?? name.fingerprint ?? "";
  if (earlier.length > 0) return refuseNode("NODE_ALREADY_BANNED", subject, "already banned");
  const event = banEvent({ type: "node.banned", subject, actor, message });
  return { ok: true, effects: [{ ...name, reason: message, actor }], events: [event] };
}

/**
 * Whether bans show on no node, because no such node exists or because it took the banned key later. Such bans are
 * lifted alone, without a change of a node.
 */
export function isBareBan(node: Pick<NodeMember, "membership"> | null, bans: readonly Ban[]): boolean {
  return bans.length > 0 && (node === null || !isBanned(node.membership));
}

/** Decide to lift the bans on an id or a key that show on no node; the effects are the ids of the bans. */
export function liftBareBans(
  subject: string,
  bans: readonly Ban[],
  { actor, message }: CommandSource,
): Decided<bigint, NodeRefusalReason> {
  if (bans.length === 0) return refuseNode("NODE_NOT_BANNED", subject, "is not banned");
  const event = banEvent({ type: "node.unbanned", subject, actor, message });
  return { ok: true, effects: bans.map(({ id }) => id), events: [event] };
}
