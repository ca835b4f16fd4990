import type { Decided } from "../decided.ts";
import { type NodeRefusalReason, refuseNode } from "../nodes/node-effects.ts";
import type { CommandSource } from "../states.ts";
import { type Ban, isBanned, type NewBan } from "./ban.ts";
import type { NodeMember } from "./membership.ts";
import { banEvent } from "./membership-events.ts";

/**
 * Decide to ban an id or a key that no node has. The event's subject is the id or the key.
 *
 * @param earlier existing bans on that id or key.
 */
export function banInAdvance(
  name: Pick<NewBan, "nodeId" | "fingerprint">,
  earlier: readonly Ban[],
  { actor, message }: CommandSource,
): Decided<NewBan, NodeRefusalReason> {
  const subject = name.nodeId ?? name.fingerprint ?? "";
  if (earlier.length > 0) return refuseNode("NODE_ALREADY_BANNED", subject, "is already banned");
  const event = banEvent({ type: "node.banned", subject, actor, message });
  return { ok: true, effects: [{ ...name, reason: message, actor }], events: [event] };
}

/**
 * Whether no node's membership shows these bans, because the node does not exist or took the banned key later.
 * Lifting such bans changes no node.
 */
export function isBareBan(node: Pick<NodeMember, "membership"> | null, bans: readonly Ban[]): boolean {
  return bans.length > 0 && (node === null || !isBanned(node.membership));
}

/**
 * Decide to lift the bans on an id or a key that do not show in any node's membership. The effects are the ids of
 * the bans.
 */
export function liftBareBans(
  subject: string,
  bans: readonly Ban[],
  { actor, message }: CommandSource,
): Decided<bigint, NodeRefusalReason> {
  if (bans.length === 0) return refuseNode("NODE_NOT_BANNED", subject, "is not banned");
  const event = banEvent({ type: "node.unbanned", subject, actor, message });
  return { ok: true, effects: bans.map(({ id }) => id), events: [event] };
}
