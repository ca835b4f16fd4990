import type { Selector } from "../labels/selectors.ts";
import type { Membership } from "../states.ts";
import { EVENT_TYPES } from "./event-catalogue.ts";
import { type EventType, isJsonObject, type Json, type NewEvent } from "./events.ts";

/** An event of the log. StoredEvent of the store is one. */
export interface LoggedEvent extends NewEvent {
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** What an event of the log means for a node that is held. */
export type EventEffect =
  /** The node's membership changed. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** The node is no longer in the record. */
  | { readonly kind: "removed"; readonly by: "operator" | "node" }
  /** Another replica took the next epoch: this replica's session is fenced. */
  | { readonly kind: "moved" }
  /** The node's information changed in the record; the digest is null when the event does not carry it. */
  | { readonly kind: "info"; readonly digest: string | null }
  /** The agent's settings changed: labels, or a required key rotation. */
  | { readonly kind: "labels" }
  /** The node has a new key with this fingerprint; null when the event does not carry it. */
  | { readonly kind: "key"; readonly fingerprint: string | null }
  /** The node flaps, rebooted, or its hardware conditions changed: holds may have to follow. */
  | { readonly kind: "hardware" }
  | { readonly kind: "none" };

const NONE: EventEffect = { kind: "none" };

const AN_EVENT: LoggedEvent = {
  ...{ type: "brake.changed", subject: "", actor: "", reason: "", message: "", before: null, after: null },
  atMs: 0,
};

/** Which events of the log a follower wants. */
export interface EventInterest {
  /** Events of these types, about any subject; null for all types. */
  readonly types: ReadonlySet<EventType> | null;
  /** Beside them, events of sessions by which one of these replicas loses a session, or may lose one. */
  readonly displaced: ReadonlySet<string>;
}

/** Events of sessions: all of them carry `displaces`. */
export const SESSION_EVENTS: readonly EventType[] = ["node.connection.changed", "node.session.moved"];

export const EVERY_EVENT: EventInterest = { types: null, displaced: new Set() };

/** For a follower that wants to know how far the log is, and nothing of what is in it. */
export const NO_EVENT: EventInterest = { types: new Set(), displaced: new Set() };

/**
 * Return what an event means for the node that it is about.
 *
 * @param self the actor as which this replica writes; it ignores its own events.
 */
export function effectOf(event: LoggedEvent, self: string): EventEffect {
  switch (event.type) {
    case "node.approved":
      return { kind: "membership", membership: membershipIn(event, "APPROVED") };
    case "node.rejected":
    case "node.banned":
    case "node.unbanned":
      return { kind: "membership", membership: membershipIn(event, "REJECTED") };
    case "node.deleted":
      return { kind: "removed", by: "operator" };
    case "node.deregistered":
      return { kind: "removed", by: "node" };
    case "node.connection.changed":
    case "node.session.moved":
      return event.actor === self ? NONE : { kind: "moved" };
    case "node.info.changed":
      return { kind: "info", digest: digestIn(event) };
    case "node.labels.changed":
      return { kind: "labels" };
    case "node.key.rotation.required":
      return { kind: "labels" };
    case "node.key.rotated":
      return { kind: "key", fingerprint: fingerprintIn(event) };
    case "node.flapping.started":
    case "node.rebooted":
    case "node.hardware.degraded":
    case "node.hardware.restored":
    case "node.hardware.accepted":
      return { kind: "hardware" };
    case "node.key.offered":
    case "node.identity.duplicated":
    case "node.identity.cleared":
    case "node.registered":
    case "node.health.changed":
    case "node.reactions.allowed":
    case "node.scheduling.changed":
    case "node.conditions.changed":
    case "node.drain.started":
    case "node.drain.cancelled":
    case "node.flapping.ended":
    case "node.reboot.cleared":
    case "access.token.created":
    case "access.token.revoked":
    case "join.token.created":
    case "join.token.revoked":
    case "policy.health.set":
    case "policy.health.deleted":
    case "brake.changed":
    case "webhook.set":
    case "webhook.deleted":
    case "webhook.paused":
    case "webhook.behind":
    case "webhook.replayed":
    case "job.submitted":
    case "job.changed":
    case "job.deleted":
    case "job.executions.placed":
    case "job.execution.ordered":
    case "job.execution.ended":
    case "job.execution.lost":
    case "job.execution.found":
    case "job.execution.replaced":
    case "job.executions.orphaned":
    case "job.execution.adopted":
      return NONE;
  }
}

/**
 * What a replica reads of the log: whatever may mean something for a node that it holds, and of sessions those events
 * alone by which it loses one itself.
 */
export function replicaInterest(instance: string): EventInterest {
  const types = EVENT_TYPES.filter((type) => {
    const { kind } = effectOf({ ...AN_EVENT, type }, "");
    return kind !== "none" && kind !== "moved";
  });
  return { types: new Set(types), displaced: new Set([instance]) };
}

/** Which nodes a follower wants, as far as events can tell; absent sets mean all. */
export interface WantedNodes {
  readonly memberships: ReadonlySet<string> | undefined;
  readonly statuses: ReadonlySet<string> | undefined;
  readonly selector: Selector;
}

/** Whether a node that was wanted need not be any more after an event. Errs on the side of true. */
export function mayEndWanted(
  event: Pick<NewEvent, "type" | "before" | "after">,
  { memberships, statuses, selector }: WantedNodes,
): boolean {
  switch (event.type) {
    case "node.deleted":
    case "node.deregistered":
      return true;
    case "node.registered":
    case "node.key.rotation.required":
    case "node.key.offered":
    case "node.key.rotated":
    case "node.session.moved":
    case "node.identity.duplicated":
    case "node.identity.cleared":
    case "node.info.changed":
    case "node.scheduling.changed":
    case "node.drain.started":
    case "node.drain.cancelled":
    case "node.flapping.started":
    case "node.flapping.ended":
    case "node.hardware.degraded":
    case "node.hardware.restored":
    case "node.hardware.accepted":
    case "node.conditions.changed":
    case "node.rebooted":
    case "node.reboot.cleared":
    case "node.reactions.allowed":
      return false;
    case "node.approved":
    case "node.rejected":
    case "node.banned":
    case "node.unbanned":
      return memberships?.has(textOf(event.before, "membership") ?? "") ?? false;
    case "node.connection.changed":
      return statuses?.has(textOf(event.before, "connection") ?? "") ?? false;
    case "node.health.changed":
      return statuses?.has(textOf(event.before, "health") ?? "") ?? false;
    case "node.labels.changed":
      return isAbout(selector, event);
    case "join.token.created":
    case "join.token.revoked":
    case "policy.health.set":
    case "policy.health.deleted":
    case "brake.changed":
    case "webhook.set":
    case "webhook.deleted":
    case "webhook.paused":
    case "webhook.behind":
    case "webhook.replayed":
    case "job.submitted":
    case "job.changed":
    case "job.deleted":
    case "job.executions.placed":
    case "job.execution.ordered":
    case "job.execution.ended":
    case "job.execution.lost":
    case "job.execution.found":
    case "job.execution.replaced":
    case "job.executions.orphaned":
    case "job.execution.adopted":
    case "access.token.created":
    case "access.token.revoked":
      return false;
  }
}

/** Events of nodes that change what is shown of one: a move of its stream changes its session alone. */
export const NODE_CHANGES = { prefix: "node.", except: "node.session.moved" } as const;

/** Whether an event may have changed what is shown of a node. */
export function isNodeChange(type: string): boolean {
  return type.startsWith(NODE_CHANGES.prefix) && type !== NODE_CHANGES.except;
}

function membershipIn(event: LoggedEvent, state: Membership["state"]): Membership {
  const { atMs: sinceMs, reason, message, actor } = event;
  return { state, sinceMs, reason, message, actor };
}

function digestIn({ after }: LoggedEvent): string | null {
  return textOf(after, "infoDigest");
}

function fingerprintIn({ after }: LoggedEvent): string | null {
  return textOf(after, "keyFingerprint");
}

function textOf(value: Json | null, field: string): string | null {
  const text = fieldOf(value, field);
  return typeof text === "string" ? text : null;
}

function isAbout(selector: Selector, { before, after }: Pick<NewEvent, "before" | "after">): boolean {
  const keys = [before, after].flatMap((side) => {
    const labels = fieldOf(side, "labels");
    return isJsonObject(labels) ? Object.keys(labels) : [];
  });
  return selector.some(({ key }) => keys.includes(key));
}

function fieldOf(value: Json | null, field: string): Json | undefined {
  return isJsonObject(value) ? value[field] : undefined;
}

/** Tell whether a follower wants an event. */
export function isOfInterest(
  { types, displaced }: EventInterest,
  { type, displaces = null }: Pick<NewEvent, "type" | "displaces">,
): boolean {
  if (types === null || types.has(type)) return true;
  if (displaced.size === 0 || !SESSION_EVENTS.includes(type)) return false;
  return displaces === null || displaced.has(displaces);
}

/** The interest that wants what any of several wants, and nothing else. */
export function unitedInterest(interests: readonly EventInterest[]): EventInterest {
  const types = new Set<EventType>();
  const displaced = new Set<string>();
  for (const interest of interests) {
    if (interest.types === null) return EVERY_EVENT;
    for (const type of interest.types) types.add(type);
    for (const replica of interest.displaced) displaced.add(replica);
  }
  return { types, displaced };
}
