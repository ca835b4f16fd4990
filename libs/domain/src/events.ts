import type { Connection, Health, Membership, Scheduling } from "./states.ts";

/** Plain data as JSON has it. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json };

/** Events of membership: who came, who may stay, who is gone. */
export type MembershipEventType =
  | "node.registered"
  | "node.approved"
  | "node.rejected"
  | "node.deleted"
  | "node.deregistered";

/** What an event is about. One change is one event. */
export type EventType =
  | MembershipEventType
  | "node.info.changed"
  | "node.labels.changed"
  | "node.connection.changed"
  | "node.health.changed"
  | "node.scheduling.changed";

/** An event before the record gives it an id, a revision and a time. */
export interface NewEvent {
  readonly type: EventType;
  /** The id of the node that changed. */
  readonly subject: string;
  readonly actor: string;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** For people; may be empty. */
  readonly message: string;
  /** What changed, as it was: a small object that names only the states concerned; null when there was nothing. */
  readonly before: Json | null;
  /** The same, as it is now; null when the node is gone. */
  readonly after: Json | null;
}

/**
 * The event of a change of membership. Its reason is that of the new membership; for a node that is gone,
 * OPERATOR_DELETED or AGENT_DEREGISTERED unless another is given.
 *
 * @param change `before` is null for a new node and `after` for one that is gone; `actor` and `message` are the
 *   command's; `reason` is for a node that goes by nobody's command.
 */
export function membershipEvent(change: {
  readonly type: MembershipEventType;
  readonly subject: string;
  readonly before: Membership | null;
  readonly after: Membership | null;
  readonly actor: string;
  readonly message: string;
  readonly reason?: string;
}): NewEvent {
  const { type, subject, before, after, actor, message } = change;
  const gone = type === "node.deregistered" ? "AGENT_DEREGISTERED" : "OPERATOR_DELETED";
  return {
    type,
    subject,
    actor,
    reason: change.reason ?? after?.reason ?? gone,
    message,
    before: before === null ? null : { membership: before.state },
    after: after === null ? null : { membership: after.state },
  };
}

/** The event of a node's connection made or lost; reason, message and actor are those of the new state. */
export function connectionEvent(change: {
  readonly subject: string;
  readonly before: Connection;
  readonly after: Connection;
}): NewEvent {
  const { subject, before, after } = change;
  return {
    type: "node.connection.changed",
    subject,
    actor: after.actor,
    reason: after.reason,
    message: after.message,
    before: { connection: before.state },
    after: { connection: after.state },
  };
}

/** The event of a change of effective health, marks included; reason, message and actor are those of the new state. */
export function healthEvent(change: {
  readonly subject: string;
  readonly before: Health;
  readonly after: Health;
}): NewEvent {
  const { subject, before, after } = change;
  return {
    type: "node.health.changed",
    subject,
    actor: after.actor,
    reason: after.reason,
    message: after.message,
    before: { health: before.state },
    after: { health: after.state },
  };
}

/**
 * The event of a hold placed or lifted. Actor and message are the command's, because the scheduling that is left after
 * a hold was lifted does not know who lifted it.
 */
export function schedulingEvent(change: {
  readonly subject: string;
  readonly before: Scheduling;
  readonly after: Scheduling;
  readonly actor: string;
  readonly message: string;
}): NewEvent {
  const { subject, before, after, actor, message } = change;
  return {
    type: "node.scheduling.changed",
    subject,
    actor,
    reason: after.reason,
    message,
    before: schedulingFacts(before),
    after: schedulingFacts(after),
  };
}

function schedulingFacts(scheduling: Scheduling): Json {
  return { scheduling: scheduling.state, holds: scheduling.holds.map((hold) => hold.kind) };
}
