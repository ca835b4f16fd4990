import type { NewEvent } from "../events/events.ts";
import type { Connection, HealthState } from "../states.ts";

/** Only outages that started within this time, in milliseconds, count as flapping. */
export const FLAPPING_WINDOW_MS = 600_000;
/** A node flaps if at least this many outages started within the window. */
export const FLAPPING_OUTAGES = 3;

/** A period when a node was not HEALTHY, in wall time of the store in milliseconds since 1970. */
export interface Outage {
  readonly startedAtMs: number;
  /** When the outage ended; null while it continues. */
  readonly endedAtMs: number | null;
}

/** The recent outages of a node, and whether they count as flapping. */
export interface OutageHistory {
  /** The last outages, oldest first, at most FLAPPING_OUTAGES. */
  readonly outages: readonly Outage[];
  /** When the node started flapping, in wall time of the store; null if it is not flapping. */
  readonly flappingSinceMs: number | null;
}

/** A change in detected health. */
export interface DetectedChange {
  readonly before: HealthState;
  readonly after: HealthState;
  /** The connection after the change. It shows whether the agent announced its absence. */
  readonly connection: Pick<Connection, "state" | "reason">;
}

/**
 * Record a change in detected health. A node flaps from its third outage in ten minutes until `isSteady()`. An outage
 * starts when a HEALTHY node becomes UNHEALTHY or UNKNOWN. A new node that is not HEALTHY yet has no outage, and a
 * change from UNHEALTHY to UNKNOWN does not start another outage. An agent's absence is not an outage if the agent
 * announced a shutdown or restart. Returns the same object if nothing changes.
 */
export function afterHealthChange(
  history: OutageHistory,
  { before, after, connection }: DetectedChange,
  nowMs: number,
): OutageHistory {
  if (before === "HEALTHY" && after !== "HEALTHY") {
    return isPlannedAbsence(connection) ? history : withOutage(history, nowMs);
  }
  const last = history.outages.at(-1);
  if (after !== "HEALTHY" || last === undefined || last.endedAtMs !== null) return history;
  return { ...history, outages: [...history.outages.slice(0, -1), { ...last, endedAtMs: nowMs }] };
}

/**
 * Whether enough time has passed since a flapping node's last outage started or ended.
 *
 * @param holdMs the policy's `flappingHoldMs`. If it is 0, the node is steady after one window.
 */
export function isSteady(history: OutageHistory, nowMs: number, holdMs: number): boolean {
  const sinceMs = steadySinceMs(withinPast(history, nowMs));
  return sinceMs === null || nowMs - sinceMs >= (holdMs === 0 ? FLAPPING_WINDOW_MS : holdMs);
}

/** When the last outage started or, if it has ended, when it ended; null if there are no outages. */
export function steadySinceMs({ outages }: OutageHistory): number | null {
  const last = outages.at(-1);
  return last === undefined ? null : (last.endedAtMs ?? last.startedAtMs);
}

/**
 * Correct the history after the store's clock was set back: times in the future become the current time. Returns the
 * same object if no time is in the future.
 */
export function withinPast(history: OutageHistory, nowMs: number): OutageHistory {
  const outages = pastOf(history.outages, nowMs);
  return outages === history.outages ? history : { ...history, outages };
}

/** The event of a node that starts flapping. Each period of flapping has one such event. */
export function flappingStartedEvent(subject: string, history: OutageHistory, actor: string): NewEvent {
  const firstAtMs = history.outages[0]?.startedAtMs ?? 0;
  const withinMs = (history.flappingSinceMs ?? firstAtMs) - firstAtMs;
  const { length } = history.outages;
  return {
    type: "node.flapping.started",
    subject,
    actor,
    reason: "FLAPPING",
    message: `${length} outages within ${Math.ceil(withinMs / 1000)} s`,
    before: null,
    after: { outages: length, withinMs },
  };
}

/** The event of a node that stops flapping after it has been steady for long enough. */
export function flappingEndedEvent(subject: string, { steadyMs, flappingMs, actor }: FlappingEnd): NewEvent {
  return {
    type: "node.flapping.ended",
    subject,
    actor,
    reason: "STEADY_AGAIN",
    message: `no outage began or ended for ${Math.floor(steadyMs / 1000)} s`,
    before: { flappingMs },
    after: { steadyMs },
  };
}

interface FlappingEnd {
  readonly actor: string;
  /** Time since the last outage started or ended. */
  readonly steadyMs: number;
  /** Since flapping began. */
  readonly flappingMs: number;
}

/** Whether the agent announced its absence. An announced absence is no sign of a problem. */
function isPlannedAbsence({ state, reason }: DetectedChange["connection"]): boolean {
  return state === "DISCONNECTED" && (reason === "AGENT_SHUTDOWN" || reason === "AGENT_RESTARTING");
}

function withOutage(history: OutageHistory, nowMs: number): OutageHistory {
  const begun: Outage = { startedAtMs: nowMs, endedAtMs: null };
  const outages = [...pastOf(history.outages, nowMs), begun].slice(-FLAPPING_OUTAGES);
  const recent = outages.filter(({ startedAtMs }) => nowMs - startedAtMs < FLAPPING_WINDOW_MS);
  const isFlapping = recent.length >= FLAPPING_OUTAGES;
  return { outages, flappingSinceMs: history.flappingSinceMs ?? (isFlapping ? nowMs : null) };
}

function pastOf(outages: readonly Outage[], nowMs: number): readonly Outage[] {
  const isAhead = outages.some(({ startedAtMs, endedAtMs }) => startedAtMs > nowMs || (endedAtMs ?? 0) > nowMs);
  if (!isAhead) return outages;
  return outages.map(({ startedAtMs, endedAtMs }) => ({
    startedAtMs: Math.min(startedAtMs, nowMs),
    endedAtMs: endedAtMs === null ? null : Math.min(endedAtMs, nowMs),
  }));
}
