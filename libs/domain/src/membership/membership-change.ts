import type { Decided } from "../decided.ts";
import { banEvent, membershipEvent } from "../events/events.ts";
import { type NodeEffect, type NodeRefusalReason, type NodeVerdict, refuseNode } from "../nodes/node-effects.ts";
import type { Connection, Membership, NodeType } from "../states.ts";
import { type Ban, bannedNamesOf, isBanned, missingBans, type NewBan } from "./ban.ts";
import { type CommandSource, decideMembership, type MembershipCommand } from "./membership.ts";

/** A node whose membership is decided on. NodeRecord is one. */
export interface NodeMember {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Pick<Connection, "state">;
  readonly keyFingerprint: string | null;
  readonly nextKeyFingerprint: string | null;
}

/** What follows from a membership that stays in the record. */
export type MembershipEffect = Extract<NodeEffect, { kind: "membership" | "accept-hardware" | "drop-loss" }>;

/**
 * All that a new membership changes of a node: an approval is one of the hardware that the node has now, and there is
 * nothing to react to of a node that is not approved.
 */
export function membershipEffects(membership: Membership): readonly MembershipEffect[] {
  const isApproved = membership.state === "APPROVED";
  return [{ kind: "membership", membership }, { kind: isApproved ? "accept-hardware" : "drop-loss" }];
}

/**
 * Decide a command on the membership of a node by the table of decideMembership(), with all that follows from it.
 *
 * @param bans those on the names of the node, see bannedNamesOf(); read for `ban` and `unban` alone.
 */
export function changeMembership(
  node: NodeMember,
  command: Exclude<MembershipCommand, { kind: "register" }>,
  by: CommandSource,
  bans: readonly Ban[] = [],
): NodeVerdict {
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) return decision;
  const { next, event: type } = decision;
  if (type === null) return { ok: true, effects: [], events: [] };
  const { actor, message } = by;
  const event = membershipEvent({ type, subject: node.id, before: node.membership, after: next, actor, message });
  const effects: readonly NodeEffect[] =
    next === null
      ? [{ kind: "removal", removal: { actor, reason: event.reason, message } }]
      : [...membershipEffects(next), ...banEffects(node, command.kind, by, bans)];
  return { ok: true, effects, events: [event] };
}

function banEffects(
  node: NodeMember,
  command: MembershipCommand["kind"],
  by: CommandSource,
  bans: readonly Ban[],
): readonly NodeEffect[] {
  if (command === "ban") return [{ kind: "place-bans", bans: missingBans(bannedNamesOf(node), bans, by) }];
  if (command === "unban") return [{ kind: "lift-bans", ids: bans.map(({ id }) => id) }];
  return [];
}

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
