import {
  type CommandSource,
  decideMembership,
  type Hold,
  type Label,
  type Mark,
  type Membership,
  type MembershipCommand,
  membershipEvent,
  type NewEvent,
  type Refusal,
} from "@rollcall/domain";
import type { ErrorReasonName } from "@rollcall/errors";
import type { NodeRecord } from "@rollcall/store";

/** What is written of a node. */
export type NodeChange =
  | { readonly kind: "membership"; readonly membership: Membership }
  | { readonly kind: "holds"; readonly holds: readonly Hold[] }
  | { readonly kind: "mark"; readonly mark: Mark | null }
  /** It is to rotate its key. */
  | { readonly kind: "key-rotation" }
  /** Its hardware counts as what it should be. */
  | { readonly kind: "hardware" }
  /** All labels of the operator's tier. */
  | { readonly kind: "labels"; readonly labels: readonly Label[] }
  /** Its id and its key are banned. */
  | { readonly kind: "ban"; readonly membership: Membership }
  /** Every ban on its id and its key is lifted. */
  | { readonly kind: "unban"; readonly membership: Membership }
  /** The node goes and leaves a tombstone with this reason. */
  | { readonly kind: "removal"; readonly reason: string };

/** What an operator's word does to a node: one change and its event, or nothing. */
export type NodeDecision =
  | {
      readonly ok: true;
      /** Null when everything is as it should be already, which is no error for this verb. */
      readonly effect: { readonly change: NodeChange; readonly event: NewEvent } | null;
    }
  | { readonly ok: false; readonly refusal: Refusal<ErrorReasonName> };

/** Decides what becomes of a node, which is locked until that is written. */
export type DecideNode = (node: NodeRecord, by: CommandSource) => NodeDecision;

/** Decide by the domain's table of memberships. */
export function decideMembershipOf(node: NodeRecord, command: MembershipCommand, by: CommandSource): NodeDecision {
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
  if (next === null) {
    return { ok: true, effect: { change: { kind: "removal", reason: event.reason }, event } };
  }
  const kind = command.kind === "ban" || command.kind === "unban" ? command.kind : "membership";
  return { ok: true, effect: { change: { kind, membership: next }, event } };
}

/** A decision against the caller. `text` begins with what the node is. */
export function refused(reason: ErrorReasonName, node: string, text: string): NodeDecision {
  return { ok: false, refusal: { reason, message: `node ${node} ${text}`, metadata: { node } } };
}
