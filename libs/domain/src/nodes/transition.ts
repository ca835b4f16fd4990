import { lossAfterObservation } from "../brake/reaction.ts";
import { connectionEvent, healthEvent, type Json, type NewEvent } from "../events/events.ts";
import { afterHealthChange, flappingStartedEvent, type OutageHistory } from "../health/flapping.ts";
import type { Connection, ConnectionState, Health, HealthState, Stated } from "../states.ts";
import type { Node } from "./node.ts";
import type { SessionStates } from "./node-effects.ts";

/** A new state. The store sets its time. */
export interface StateChange<S extends string> {
  readonly state: S;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  /** The facts that the change is based on, for its event. */
  readonly evidence?: Json;
}

/** What a replica observed about a node that it owns. */
export interface Transition {
  readonly nodeId: string;
  /** The epoch of the session in which the observation was made. */
  readonly epoch: number;
  readonly connection?: StateChange<ConnectionState>;
  /** The detected health, without an operator's mark. */
  readonly health?: StateChange<HealthState>;
  /** The node's brake group, used if the node is lost; omitted or "" for none. */
  readonly group?: string;
}

/** A session as the store has it. Its row is locked. */
export interface StoredSession {
  readonly nodeId: string;
  readonly connection: Connection;
  readonly detectedHealth: Health;
  readonly history: OutageHistory;
  /** Whether an operator's mark overrides the detected health. */
  readonly marked: boolean;
  readonly loss: Node["loss"];
}

/** Facts in the store that are not part of the session. */
export interface TransitionFacts {
  /** The result of mayHaveReaction(). Only needed if the transition is to a health other than HEALTHY. */
  readonly mayHaveReaction: boolean;
  readonly nowMs: number;
}

/** The changed session (null if nothing changes), and the events of the change. */
export interface TransitionPlan {
  readonly after: SessionStates | null;
  readonly events: readonly NewEvent[];
}

/** Apply an observed transition to a session. Each change that is shown has an event. */
export function planTransition(before: StoredSession, item: Transition, facts: TransitionFacts): TransitionPlan {
  const { nowMs } = facts;
  const connection = changed(before.connection, item.connection, nowMs);
  const health = changed(before.detectedHealth, item.health, nowMs);
  const change = { before: before.detectedHealth.state, after: health.state, connection };
  const history = afterHealthChange(before.history, change, nowMs);
  const { loss, event: allowed } = lossAfterObservation({
    nodeId: before.nodeId,
    before: { detected: before.detectedHealth.state, loss: before.loss },
    detected: item.health ?? null,
    isShownHealthy: health.state === "HEALTHY" && !before.marked,
    mayHaveReaction: facts.mayHaveReaction,
    group: item.group ?? "",
    nowMs,
  });
  const isSame =
    isSameState(connection, before.connection) && isSameState(health, before.detectedHealth) && loss === before.loss;
  if (isSame) return { after: null, events: [] };
  const after = { connection, health, loss, history };
  const events = eventsOf(before, item, after);
  return {
    after: { ...after, ...(events.length === 0 ? stillShown(before, health) : {}) },
    events: allowed === null ? events : [...events, allowed],
  };
}

/**
 * The states to keep if the transition has no event. Without an event, nothing that is shown about the node may change,
 * not even a reason: otherwise watches would miss the change. The detected health of a marked node is not shown, so it
 * can change.
 */
function stillShown(before: StoredSession, health: Health): Pick<SessionStates, "connection" | "health"> {
  return { connection: before.connection, health: before.marked ? health : before.detectedHealth };
}

function eventsOf(
  before: StoredSession,
  item: Transition,
  after: Pick<SessionStates, "connection" | "health" | "history">,
): readonly NewEvent[] {
  const { nodeId: subject, detectedHealth } = before;
  const { connection, health, history } = after;
  const events: NewEvent[] = [];
  if (connection.state !== before.connection.state) {
    events.push(connectionEvent({ subject, before: before.connection, after: connection }));
  }
  if (history.flappingSinceMs !== null && before.history.flappingSinceMs === null) {
    events.push(flappingStartedEvent(subject, history, health.actor));
  }
  // Write no event for a marked node, because it is shown as UNHEALTHY before and after the change.
  if (health.state !== detectedHealth.state && !before.marked) {
    const evidence = item.health?.evidence;
    const change = { subject, before: detectedHealth, after: health };
    events.push(healthEvent(evidence === undefined ? change : { ...change, evidence }));
  }
  return events;
}

/** Apply a change. A new state gets the current time. An unchanged state keeps its time. */
function changed<S extends string>(before: Stated<S>, change: StateChange<S> | undefined, nowMs: number): Stated<S> {
  if (change === undefined) return before;
  const { state, reason, message, actor } = change;
  const sinceMs = state === before.state ? before.sinceMs : nowMs;
  return { state, sinceMs, reason, message, actor };
}

function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason && left.message === right.message;
}
