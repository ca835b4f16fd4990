import { lossAfterObservation } from "../brake/reaction.ts";
import { connectionEvent, healthEvent, type Json, type NewEvent } from "../events/events.ts";
import { afterHealthChange, flappingStartedEvent, type OutageHistory } from "../health/flapping.ts";
import type { Connection, ConnectionState, Health, HealthState, Stated } from "../states.ts";
import type { SessionStates } from "./node-effects.ts";
import type { NodeRecord } from "./node-record.ts";

/** A state to move to. Since when it holds is the record's clock. */
export interface StateChange<S extends string> {
  readonly state: S;
  readonly reason: string;
  readonly message: string;
  readonly actor: string;
  /** What it was concluded from, for the event of the change. */
  readonly evidence?: Json;
}

/** What a replica observed of a node that it holds. */
export interface Transition {
  readonly nodeId: string;
  /** The session epoch under which it was observed. */
  readonly epoch: number;
  readonly connection?: StateChange<ConnectionState>;
  /** Detected health, before any mark. */
  readonly health?: StateChange<HealthState>;
  /** The node's group of the brake, in case that it is lost; none when it is left out or "". */
  readonly group?: string;
}

/** A session as the record has it, its row locked. */
export interface RecordedSession {
  readonly nodeId: string;
  readonly connection: Connection;
  readonly detectedHealth: Health;
  readonly history: OutageHistory;
  /** Whether an operator's mark hides what is detected. */
  readonly marked: boolean;
  readonly loss: NodeRecord["loss"];
}

/** What the record says besides the session. */
export interface TransitionFacts {
  /** See mayHaveReaction(). Read only when the transition is to a health other than HEALTHY. */
  readonly mayHaveReaction: boolean;
  readonly nowMs: number;
}

/** The changed session, null when it stays as it is, and the events of the change. */
export interface TransitionPlan {
  readonly after: SessionStates | null;
  readonly events: readonly NewEvent[];
}

/** Decide what an observed transition makes of a session: one event for each change that is shown. */
export function planTransition(before: RecordedSession, item: Transition, facts: TransitionFacts): TransitionPlan {
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
 * What is shown of a node changes with an event alone, or watches and lists would differ: a state that is not left
 * keeps its reason. Under a mark what was detected is not shown.
 */
function stillShown(before: RecordedSession, health: Health): Pick<SessionStates, "connection" | "health"> {
  return { connection: before.connection, health: before.marked ? health : before.detectedHealth };
}

function eventsOf(
  before: RecordedSession,
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
  // Under a mark the node counts as UNHEALTHY before and after.
  if (health.state !== detectedHealth.state && !before.marked) {
    const evidence = item.health?.evidence;
    const change = { subject, before: detectedHealth, after: health };
    events.push(healthEvent(evidence === undefined ? change : { ...change, evidence }));
  }
  return events;
}

/** A state that is entered holds from now on; one that stays keeps its time. */
function changed<S extends string>(before: Stated<S>, change: StateChange<S> | undefined, nowMs: number): Stated<S> {
  if (change === undefined) return before;
  const { state, reason, message, actor } = change;
  const sinceMs = state === before.state ? before.sinceMs : nowMs;
  return { state, sinceMs, reason, message, actor };
}

function isSameState(left: Stated<string>, right: Stated<string>): boolean {
  return left.state === right.state && left.reason === right.reason && left.message === right.message;
}
