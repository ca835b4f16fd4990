import type { Json, MembershipEventType, NewEvent } from "../events/events.ts";
import type { Membership } from "../states.ts";
import { BAN_LIFTED, isBanned, MEMBERSHIP_BANNED } from "./ban.ts";

/**
 * The event of a membership change. Its reason is `change.reason` if given, otherwise the reason of the new
 * membership, otherwise AGENT_DEREGISTERED or OPERATOR_DELETED depending on the type.
 *
 * @param change `before` is null for a new node, and `after` for a deleted one. `actor` and `message` come from the
 *   command. `reason` is for a node that is deleted without a command.
 */
export function membershipEvent(change: {
  readonly type: MembershipEventType;
  readonly subject: string;
  readonly before: Membership | null;
  readonly after: Membership | null;
  readonly actor: string;
  readonly message: string;
  readonly reason?: string;
  /** The id of the join token that admitted the node. */
  readonly joinToken?: string | null;
  /** The address that the node joined from. */
  readonly joinedFrom?: string | null;
}): NewEvent {
  const { type, subject, before, after, actor, message } = change;
  const gone = type === "node.deregistered" ? "AGENT_DEREGISTERED" : "OPERATOR_DELETED";
  return {
    type,
    subject,
    actor,
    reason: change.reason ?? after?.reason ?? gone,
    message,
    before: before === null ? null : membershipFacts(before),
    after: after === null ? null : Object.assign(membershipFacts(after), joiningFacts(change)),
  };
}

/** Include `banned` only if it is true, because most nodes are never banned. */
function membershipFacts(membership: Membership): Readonly<Record<string, Json>> {
  return isBanned(membership) ? { membership: membership.state, banned: true } : { membership: membership.state };
}

function joiningFacts(change: { readonly joinToken?: string | null; readonly joinedFrom?: string | null }) {
  const { joinToken, joinedFrom } = change;
  return { ...(joinToken == null ? {} : { joinToken }), ...(joinedFrom == null ? {} : { joinedFrom }) };
}

/**
 * The event of a ban that is placed or lifted, on a node id that does not exist or on a key. For a key, the subject is
 * its fingerprint.
 */
export function banEvent(change: {
  readonly type: "node.banned" | "node.unbanned";
  readonly subject: string;
  readonly actor: string;
  readonly message: string;
}): NewEvent {
  const isPlaced = change.type === "node.banned";
  return {
    ...change,
    reason: isPlaced ? MEMBERSHIP_BANNED : BAN_LIFTED,
    before: isPlaced ? null : { banned: true },
    after: isPlaced ? { banned: true } : null,
  };
}
