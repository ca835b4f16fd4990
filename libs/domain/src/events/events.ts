import type { Connection, Health, Scheduling } from "../states.ts";

/** Plain JSON data. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export type JsonObject = { readonly [key: string]: Json };

/** Whether a value is a JSON object: neither null nor an array. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The actor of events that a health replica writes. */
export function replicaActor(replicaId: string): string {
  return `replica:${replicaId}`;
}

/** The types of events about nodes that join or leave, and about decisions to admit them. */
export type MembershipEventType =
  | "node.registered"
  | "node.approved"
  | "node.rejected"
  | "node.deleted"
  | "node.deregistered"
  | "node.banned"
  | "node.unbanned";

/** Events about jobs and their executions. */
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
  | "job.execution.restored"
  | "job.executions.orphaned"
  | "job.execution.adopted";

/** Events of webhooks. */
export type WebhookEventType =
  | "webhook.set"
  | "webhook.deleted"
  | "webhook.paused"
  | "webhook.behind"
  | "webhook.replayed";

/** The type of an event. Each event describes one change. */
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

/** An event before the store assigns its id, revision and time. */
export interface NewEvent {
  readonly type: EventType;
  /** The id of the object that changed, usually a node. */
  readonly subject: string;
  readonly actor: string;
  /** For machines, SCREAMING_SNAKE. */
  readonly reason: string;
  /** The message for people; may be empty. */
  readonly message: string;
  /** The state before the change, limited to what changed; null if there was none. */
  readonly before: Json | null;
  /** The state after the change, limited like `before`; null if the object was deleted. */
  readonly after: Json | null;
  /**
   * For session events: the instance of the replica that loses its session, or "" for none. Absent in other events.
   * Null in events written before this field existed: any replica may have lost its session.
   */
  readonly displaces?: string | null;
}

/** The event of a node that connected or disconnected, with the reason, message and actor of the new state. */
export function connectionEvent(change: {
  readonly subject: string;
  readonly before: Connection;
  readonly after: Connection;
  /** The replica that loses the session. Default: none. */
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
 * The event of a connected node that opened a stream at another replica before it closed the previous one. The node
 * stays connected, but the previous replica's session is fenced.
 */
export function sessionMovedEvent(move: {
  readonly subject: string;
  /** The instance of the previous replica. */
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

/** The event of changed effective health, with the reason, message and actor of the new state. */
export function healthEvent(change: {
  readonly subject: string;
  readonly before: Health;
  readonly after: Health;
  /** The facts that the decision is based on; omitted if the reason is enough. */
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
 * The event of a hold that was added or removed. Actor and message come from the command, because the scheduling state
 * after a removal no longer shows who removed the hold.
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
