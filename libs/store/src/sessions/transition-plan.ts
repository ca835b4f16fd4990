import {
  afterHealthChange,
  type Connection,
  connectionEvent,
  DEFAULT_HEALTH_POLICY,
  flappingHealth,
  flappingStartedEvent,
  type Health,
  healthEvent,
  type NewEvent,
  type Reaction,
  type Stated,
} from "@rollcall/domain";
import { toConnection, toDetectedHealth, toHealth, toHistory } from "../nodes/node-record.ts";
import type { StateChange, Transition } from "./transitions.ts";

/** A session under its lock. */
export type SessionBefore = Parameters<typeof toConnection>[0] &
  Parameters<typeof toDetectedHealth>[0] &
  Parameters<typeof toHistory>[0] & {
    readonly node_id: string;
    readonly marked: boolean;
    readonly reaction: Reaction | null;
    readonly now: Date;
  };

/** What a session becomes. Times are in milliseconds since 1970. */
export interface SessionAfter {
  readonly connection: Connection;
  readonly health: Health;
  /** What was detected of a node that flaps; null for all others. */
  readonly detected: Health | null;
  readonly changes: readonly number[];
  readonly flappingSinceMs: number | null;
}

/**
 * Decide what an observed transition makes of a session, and what there is to tell of it. Null for a session that stays
 * as it is.
 */
export function planTransition(
  row: SessionBefore,
  item: Transition,
): { readonly after: SessionAfter | null; readonly events: readonly NewEvent[] } {
  const nowMs = row.now.getTime();
  const connectionBefore = toConnection(row);
  const connection = changed(connectionBefore, item.connection, nowMs);
  const detectedBefore = toDetectedHealth(row);
  const detected = changed(detectedBefore, item.health, nowMs);
  const historyBefore = toHistory(row);
  const history = detected.state === detectedBefore.state ? historyBefore : afterHealthChange(historyBefore, nowMs);
  const { flappingHoldMs = DEFAULT_HEALTH_POLICY.flappingHoldMs } = item;
  const healthBefore = toHealth(row);
  const health = since(healthBefore, flappingHealth(detected, history, flappingHoldMs));
  const isSame =
    isSameState(connection, connectionBefore) &&
    isSameState(health, healthBefore) &&
    isSameState(detected, detectedBefore);
  if (isSame) return { after: null, events: [] };
  const { changes, flappingSinceMs } = history;
  const after = { connection, health, changes, flappingSinceMs };
  const events = eventsOf(row, item, after);
  return {
    after: {
      ...after,
      ...(events.length === 0 ? stillShown(row, health) : {}),
      detected: flappingSinceMs === null ? null : detected,
    },
    events,
  };
}

/**
 * What is shown of a node changes with an event alone, or watches and lists would differ: a state that is not left
 * keeps its reason. Under a mark what was detected is not shown.
 */
function stillShown(row: SessionBefore, health: Health): Pick<SessionAfter, "connection" | "health"> {
  return { connection: toConnection(row), health: row.marked ? health : toHealth(row) };
}

function eventsOf(row: SessionBefore, item: Transition, after: Omit<SessionAfter, "detected">): readonly NewEvent[] {
  const subject = row.node_id;
  const { connection, health } = after;
  const events: NewEvent[] = [];
  const connectionBefore = toConnection(row);
  if (connection.state !== connectionBefore.state) {
    events.push(connectionEvent({ subject, before: connectionBefore, after: connection }));
  }
  if (after.flappingSinceMs !== null && row.flapping_since === null) {
    events.push(flappingStartedEvent(subject, after, health.actor));
  }
  const before = toHealth(row);
  // Under a mark the node counts as UNHEALTHY before and after.
  if (health.state !== before.state && !row.marked) {
    const evidence = item.health?.evidence;
    const change = { subject, before, after: health };
    events.push(healthEvent(evidence === undefined ? change : { ...change, evidence }));
  }
  return events;
}

/** A state that is entered anew holds from now on; one that stays keeps its time. */
function changed<S extends string>(before: Stated<S>, change: StateChange<S> | undefined, nowMs: number): Stated<S> {
  if (change === undefined) return before;
  const { state, reason, message, actor } = change;
  const sinceMs = state === before.state ? before.sinceMs : nowMs;
  return { state, sinceMs, reason, message, actor };
}

function since(before: Health, after: Health): Health {
  return before.state === after.state ? { ...after, sinceMs: before.sinceMs } : after;
}

function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason && left.message === right.message;
}
