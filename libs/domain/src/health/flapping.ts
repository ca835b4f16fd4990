import type { NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";

/** Changes of health that lie further back than this do not count. */
export const FLAPPING_WINDOW_MS = 600_000;
/** More changes than this within the window are flapping. */
export const MOST_CHANGES = 5;

/**
 * What is remembered of a node's changes of detected health. All times are the record's wall time in milliseconds since
 * 1970.
 */
export interface HealthHistory {
  /** Its recent changes, oldest first; no more of them than the decision needs. */
  readonly changes: readonly number[];
  /** Since when the node is flapping; null when it is not. */
  readonly flappingSinceMs: number | null;
}

/**
 * Note a change of detected health. A node that has changed more than five times in ten minutes flaps from then on,
 * until `isSteady()` says that it is over.
 */
export function afterHealthChange(history: HealthHistory, nowMs: number): HealthHistory {
  const changes = [...pastOf(history.changes, nowMs), nowMs].slice(-(MOST_CHANGES + 1));
  const recent = changes.filter((atMs) => nowMs - atMs < FLAPPING_WINDOW_MS);
  const isFlapping = recent.length > MOST_CHANGES;
  return { changes, flappingSinceMs: history.flappingSinceMs ?? (isFlapping ? nowMs : null) };
}

/**
 * Tell whether a node that flaps has been steady for long enough.
 *
 * @param holdMs the policy's `flappingHoldMs`; a node that is never held is steady after one window without a change.
 */
export function isSteady({ changes }: HealthHistory, nowMs: number, holdMs: number): boolean {
  const last = pastOf(changes, nowMs).at(-1);
  return last === undefined || nowMs - last >= steadyAfterMs(holdMs);
}

/**
 * What a history says once the record's clock was set back: what lies ahead of it counts as of now. The same object
 * where nothing does.
 */
export function withinPast(history: HealthHistory, nowMs: number): HealthHistory {
  const changes = pastOf(history.changes, nowMs);
  return changes === history.changes ? history : { ...history, changes };
}

/**
 * The health that is shown of a node that flaps: UNHEALTHY for as long as it is held, so that the log does not
 * follow each turn; as detected when the policy never holds it.
 */
export function flappingHealth(detected: Health, history: HealthHistory, holdMs: number): Health {
  const { flappingSinceMs } = history;
  if (flappingSinceMs === null) return detected;
  const message =
    `changed health more than ${MOST_CHANGES} times in ` + `${FLAPPING_WINDOW_MS / 60_000} minutes; ${outlook(holdMs)}`;
  const state = holdMs === 0 ? detected.state : "UNHEALTHY";
  return { ...detected, state, reason: "FLAPPING", message };
}

/** The event of a node that has begun to flap: one for as long as it does. */
export function flappingStartedEvent(subject: string, history: HealthHistory, actor: string): NewEvent {
  const [first = 0] = history.changes;
  const withinMs = (history.flappingSinceMs ?? first) - first;
  return {
    type: "node.flapping.started",
    subject,
    actor,
    reason: "FLAPPING",
    message: `${history.changes.length} changes of health in ${Math.ceil(withinMs / 1000)} s`,
    before: null,
    after: { changes: history.changes.length, withinMs },
  };
}

/** The event of a node that has been steady for long enough. */
export function flappingEndedEvent(subject: string, { steadyMs, flappingMs, actor }: FlappingEnd): NewEvent {
  return {
    type: "node.flapping.ended",
    subject,
    actor,
    reason: "STEADY_AGAIN",
    message: `no change of health for ${Math.floor(steadyMs / 1000)} s`,
    before: { flappingMs },
    after: { steadyMs },
  };
}

interface FlappingEnd {
  readonly actor: string;
  /** Since its last change. */
  readonly steadyMs: number;
  /** Since it began. */
  readonly flappingMs: number;
}

function steadyAfterMs(holdMs: number): number {
  return holdMs === 0 ? FLAPPING_WINDOW_MS : holdMs;
}

function outlook(holdMs: number): string {
  const minutes = Math.round(steadyAfterMs(holdMs) / 6_000) / 10;
  return `until it has been steady for ${minutes} min`;
}

function pastOf(changes: readonly number[], nowMs: number): readonly number[] {
  const isAhead = changes.some((atMs) => atMs > nowMs);
  return isAhead ? changes.map((atMs) => Math.min(atMs, nowMs)) : changes;
}
