import {
  type CommandSource,
  decideMembership,
  type Hold,
  type Mark,
  type Membership,
  type MembershipCommand,
  membershipEvent,
  type NewEvent,
  type Refusal,
} from "@rollcall/domain";
import type { ErrorReasonName } from "@rollcall/runtime";
import type { NodeRecord } from "@rollcall/store";

/** What is written of a node. */
export type NodeChange =
  | { readonly kind: "membership"; readonly membership: Membership }
  | { readonly kind: "holds"; readonly holds: readonly Hold[] }
  | { readonly kind: "mark"; readonly mark: Mark | null }
  /** The node goes and leaves a tombstone with this reason. */
  | { readonly kind: "removal"; readonly reason: string };

/** What an operator's word does to a node: one change and its event, or nothing. */
export type NodeDecision =
  | { readonly ok: true; readonly change: NodeChange; readonly event: NewEvent }
  | { readonly ok: false; readonly refusal: Refusal<ErrorReasonName> };

/** Decides what becomes of a node, which is locked until that is written. */
export type DecideNode = (node: NodeRecord, by: CommandSource) => NodeDecision;

/** Decide by the domain's table of memberships. */
export function decideMembershipOf(
  node: NodeRecord,
  command: MembershipCommand,
  by: CommandSource,
): NodeDecision {
  const subject = { ...node, alive: node.connection.state === "CONNECTED" };
  const decision = decideMembership(subject, node.id, command, by);
  if (!decision.ok) return decision;
  const { next, event: type } = decision;
  if (type === null) throw new Error(`${command.kind} of a node came to nothing`);
  const event = membershipEvent({
    type,
    subject: node.id,
    before: node.membership,
    after: next,
    actor: by.actor,
    message: by.message,
  });
  const change: NodeChange =
    next === null
      ? { kind: "removal", reason: event.reason }
      : { kind: "membership", membership: next };
  return { ok: true, change, event };
}

/** A decision against the caller. `text` begins with what the node is. */
export function refused(reason: ErrorReasonName, node: string, text: string): NodeDecision {
  return { ok: false, refusal: { reason, message: `node ${node} ${text}`, metadata: { node } } };
}
