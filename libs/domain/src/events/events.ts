import { BAN_LIFTED, isBanned, MEMBERSHIP_BANNED } from "../membership/ban.ts";
import type { Connection, Health, Membership, Scheduling } from "../states.ts";

/** Plain data as JSON has it. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export type JsonObject = { readonly [key: string]: Json };

/** Whether a value is an object of JSON: neither null nor a list. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The actor as which a health replica writes. */
export function replicaActor(replicaId: string): string {
  return `replica:${replicaId}`;
}

/** Events of membership: who came, who may stay, who is gone. */
export type MembershipEventType =
  | "node.registered"
  | "node.approved"
  | "node.rejected"
  | "node.deleted"
  | "node.deregistered"
  | "node.banned"
  | "node.unbanned";

/** Events of work: jobs, and their executions. */
export type JobEventType =
  | "job.submitted"
  | "job.changed"
  | "job.deleted"
  | "job.executions.placed"
  | "job.execution.ordered"
  | "job.execution.ended"
  | "job.execution.lost"
  | "job.execution.found"
  | "job.execution.replaced"
  | "job.executions.orphaned"
  | "job.execution.adopted";

/** Events of webhooks. */
export type WebhookEventType =
  | "webhook.set"
  | "webhook.deleted"
  | "webhook.paused"
  | "webhook.behind"
  | "webhook.replayed";

/** What an event is about. One change is one event. */
export type EventType =
  | MembershipEventType
  | JobEventType
  | "node.key.rotation.required"
  | "node.key.offered"
  | "node.key.rotated"
  | "node.identity.duplicated"
  | "node.identity.cleared"
  | "node.info.changed"
  | "node.labels.changed"
  | "node.connection.changed"
  | "node.session.moved"
  | "node.health.changed"
  | "node.reactions.allowed"
  | "node.scheduling.changed"
  | "node.drain.started"
  | "node.drain.cancelled"
  | "node.flapping.started"
  | "node.flapping.ended"
  | "node.hardware.degraded"
  | "node.hardware.restored"
  | "node.hardware.accepted"
  | "node.conditions.changed"
  | "node.rebooted"
  | "node.reboot.cleared"
  | "join.token.created"
  | "join.token.revoked"
  | "access.token.created"
  | "access.token.revoked"
  | "policy.health.set"
  | "policy.health.deleted"
  | "brake.changed"
  | WebhookEventType;

/** An event before the record gives it an id, a revision and a time. */
export interface NewEvent {
  readonly type: EventType;
  /** The id of what changed, most often a node's. */
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
  /**
   * Of events of sessions: the instance of the replica that loses the session by it, "" for none. Absent from events of
   * other types, and null in those that a release before this field wrote: any replica may lose its session by them.
   */
  readonly displaces?: string | null;
}

/**
 * The event of a change of membership. Its reason is that of the new membership; for a node that is gone,
 * OPERATOR_DELETED or AGENT_DEREGISTERED unless another is given.
 *
 * @param change `before` is null for a new node and `after` for one that is gone; `actor` and `message` are the
 *   command's; `reason` is for a node that goes without a command.
 */
export function membershipEvent(change: {
  readonly type: MembershipEventType;
  readonly subject: string;
  readonly before: Membership | null;
  readonly after: Membership | null;
  readonly actor: string;
  readonly message: string;
  readonly reason?: string;
  /** The join token that let the node in, by its id. */
  readonly joinToken?: string | null;
  /** The address from which the node joined. */
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

/** A ban is named only where there is one: most memberships never knew any. */
function membershipFacts(membership: Membership): Readonly<Record<string, Json>> {
  return isBanned(membership) ? { membership: membership.state, banned: true } : { membership: membership.state };
}

function joiningFacts(change: { readonly joinToken?: string | null; readonly joinedFrom?: string | null }) {
  const { joinToken, joinedFrom } = change;
  return { ...(joinToken == null ? {} : { joinToken }), ...(joinedFrom == null ? {} : { joinedFrom }) };
}

/**
 * The event of a ban placed on, or lifted from, an id or a key that no node has; the key's fingerprint is its subject
 * then.
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

/** The event of a node's connection made or lost; reason, message and actor are those of the new state. */
export function connectionEvent(change: {
  readonly subject: string;
  readonly before: Connection;
  readonly after: Connection;
  /** The replica that loses the session by it. Default none. */
  readonly displaces?: string;
}): NewEvent {
  const { subject, before, after, displaces = "" } = change;
  return {
    type: "node.connection.changed",
    subject,
    actor: after.actor,
    reason: after.reason,
    message: after.message,
    before: { connection: before.state },
    after: { connection: after.state },
    displaces,
  };
}

/**
 * The event of a stream that a connected node opened at another replica before it left the one before: its connection
 * does not change. The replica before learns from it that its own session is fenced.
 */
export function sessionMovedEvent(move: {
  readonly subject: string;
  /** The instances of the replicas. */
  readonly before: string;
  readonly after: string;
}): NewEvent {
  const { subject, before, after } = move;
  return {
    type: "node.session.moved",
    subject,
    actor: replicaActor(after),
    reason: "STREAM_MOVED",
    message: "",
    before: { replica: before },
    after: { replica: after },
    displaces: before,
  };
}

/** The event of a change of effective health, marks included; reason, message and actor are those of the new state. */
export function healthEvent(change: {
  readonly subject: string;
  readonly before: Health;
  readonly after: Health;
  /** What it was concluded from; left out where the reason says all. */
  readonly evidence?: Json;
}): NewEvent {
  const { subject, before, after, evidence } = change;
  return {
    type: "node.health.changed",
    subject,
    actor: after.actor,
    reason: after.reason,
    message: after.message,
    before: { health: before.state },
    after: { health: after.state, ...(evidence === undefined ? {} : { evidence }) },
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
