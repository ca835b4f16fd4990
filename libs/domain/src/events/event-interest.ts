import type { EventType, NewEvent } from "./events.ts";

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
