import { type EventType, isJsonObject, type Json, type NewEvent } from "../events/events.ts";
import type { Selector } from "../labels/selectors.ts";
import type { Membership } from "../states.ts";
import { EVENT_TYPES } from "./event-catalogue.ts";

/** An event from the log. The store's EventRow has these fields. */
export interface LoggedEvent extends NewEvent {
  /** Wall time in milliseconds since 1970. */
  readonly atMs: number;
}

/** The effect of a logged event on a node that this replica owns. */
export type EventEffect =
  /** The node's membership changed. */
  | { readonly kind: "membership"; readonly membership: Membership }
  /** The node was deleted from the store. */
  | { readonly kind: "removed"; readonly by: "operator" | "node" }
  /** Another replica took over the node with the next epoch, so this replica's session is fenced. */
  | { readonly kind: "moved" }
  /** The node's information in the store changed; the digest is null if the event does not contain it. */
  | { readonly kind: "info"; readonly digest: string | null }
  /** The agent's settings changed: labels, or a required key rotation. */
  | { readonly kind: "labels" }
  /** The node has a new key; the fingerprint is null if the event does not contain it. */
  | { readonly kind: "key"; readonly fingerprint: string | null }
  /** The node flaps, has rebooted, or has other hardware conditions. Its holds may have to change. */
  | { readonly kind: "hardware" }
  | { readonly kind: "none" };

const NONE: EventEffect = { kind: "none" };

const AN_EVENT: LoggedEvent = {
  ...{ type: "brake.changed", subject: "", actor: "", reason: "", message: "", before: null, after: null },
  atMs: 0,
};

/** Selects the events of the log that a follower receives. */
export interface EventInterest {
  /** Event types to receive, about any subject; null for all types. */
  readonly types: ReadonlySet<EventType> | null;
  /** Receive also session events that end, or may end, a session of one of these replicas. */
  readonly displaced: ReadonlySet<string>;
}

/** The types of events about sessions. Only these events have the field `displaces`. */
export const SESSION_EVENTS: readonly EventType[] = ["node.connection.changed", "node.session.moved"];

export const EVERY_EVENT: EventInterest = { types: null, displaced: new Set() };

/** The interest of a follower that only needs the position of the log. */
export const NO_EVENT: EventInterest = { types: new Set(), displaced: new Set() };

/**
 * The effect of an event on the node that it is about.
 *
 * @param self this replica's actor. Its own events have no effect.
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
    case "job.execution.restored":
    case "job.executions.orphaned":
    case "job.execution.adopted":
      return NONE;
  }
}

/**
 * The events that a replica follows: all that can affect a node that it owns, and the session events that end one
 * of its sessions.
 */
export function replicaInterest(instance: string): EventInterest {
  const types = EVENT_TYPES.filter((type) => {
    const { kind } = effectOf({ ...AN_EVENT, type }, "");
    return kind !== "none" && kind !== "moved";
  });
  return { types: new Set(types), displaced: new Set([instance]) };
}

/** The part of a follower's node filter that can be checked against events. Undefined sets match all nodes. */
export interface WantedNodes {
  readonly memberships: ReadonlySet<string> | undefined;
  readonly statuses: ReadonlySet<string> | undefined;
  readonly selector: Selector;
}

/** Whether an event can make a node stop matching the filter. True if in doubt. */
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
    case "job.execution.restored":
    case "job.executions.orphaned":
    case "job.execution.adopted":
    case "access.token.created":
    case "access.token.revoked":
      return false;
  }
}

/** Selects the events that change how a node is shown. A session that moves changes nothing that is shown. */
export const NODE_CHANGES = { prefix: "node.", except: "node.session.moved" } as const;

/** Whether an event can change how a node is shown. */
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

/** Whether a follower receives an event. */
export function isOfInterest(
  { types, displaced }: EventInterest,
  { type, displaces = null }: Pick<NewEvent, "type" | "displaces">,
): boolean {
  if (types === null || types.has(type)) return true;
  if (displaced.size === 0 || !SESSION_EVENTS.includes(type)) return false;
  return displaces === null || displaced.has(displaces);
}

/** Combine interests: the result selects every event that at least one of them selects. */
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
