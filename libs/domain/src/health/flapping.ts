import type { NewEvent } from "../events/events.ts";
import type { Connection, HealthState } from "../states.ts";

/** Outages that began longer ago than this do not count. */
export const FLAPPING_WINDOW_MS = 600_000;
/** A node flaps when this many outages began within the window. */
export const FLAPPING_OUTAGES = 3;

/** A time for which a node was not HEALTHY, as wall times of the record in milliseconds since 1970. */
export interface Outage {
  readonly startedAtMs: number;
  /** Null while it lasts. */
  readonly endedAtMs: number | null;
}

/** The recent outages of a node, and whether they count as flapping. */
export interface OutageHistory {
  /** Oldest first, at most FLAPPING_OUTAGES of them. */
  readonly outages: readonly Outage[];
  /** Since when the node is flapping, as wall time of the record; null when it is not. */
  readonly flappingSinceMs: number | null;
}

/** A change of detected health. */
export interface DetectedChange {
  readonly before: HealthState;
  readonly after: HealthState;
  /** The connection once the change is written. It says whether the agent announced that it leaves. */
  readonly connection: Pick<Connection, "state" | "reason">;
}

/**
 * Record a change of detected health. A node flaps from its third outage in ten minutes until `isSteady()`. An outage
 * begins when a HEALTHY node is no longer HEALTHY: the first join is none, and UNHEALTHY to UNKNOWN is the same outage.
 * An agent that said goodbye, or that it restarts, causes none either. Returns the same object when nothing changes.
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
 * Whether a flapping node has been steady for long enough: since its last outage began, or ended.
 *
 * @param holdMs the policy's `flappingHoldMs`; a node that is never held is steady after one window.
 */
export function isSteady(history: OutageHistory, nowMs: number, holdMs: number): boolean {
  const sinceMs = steadySinceMs(withinPast(history, nowMs));
  return sinceMs === null || nowMs - sinceMs >= (holdMs === 0 ? FLAPPING_WINDOW_MS : holdMs);
}

/** When the last outage began or ended; null without outages. */
export function steadySinceMs({ outages }: OutageHistory): number | null {
  const last = outages.at(-1);
  return last === undefined ? null : (last.endedAtMs ?? last.startedAtMs);
}

/**
 * The history after the record's clock was set back: times that lie ahead of it count as now. The same object when none
 * does.
 */
export function withinPast(history: OutageHistory, nowMs: number): OutageHistory {
  const outages = pastOf(history.outages, nowMs);
  return outages === history.outages ? history : { ...history, outages };
}

/** The event of a node that begins to flap: one for as long as it does. */
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

/** The event of a node that has been steady for long enough. */
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
  /** Since the last outage began or ended. */
  readonly steadyMs: number;
  /** Since flapping began. */
  readonly flappingMs: number;
}

/** Whether the agent announced that it leaves, so that its absence says nothing about the node. */
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
