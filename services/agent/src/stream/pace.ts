import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toMs } from "./hello.ts";

/** The intervals of a session, as the server sets them. */
export interface Pace {
  readonly heartbeatMs: number;
  /** The time between reports of the node's description. */
  readonly infoMs: number;
  /** The time without a heartbeat after which the node is declared UNHEALTHY. */
  readonly unhealthyAfterMs: number;
}

/** The intervals until the server sets others. */
export const DEFAULT_PACE: Pace = {
  heartbeatMs: 15_000,
  infoMs: 60_000,
  unhealthyAfterMs: 60_000,
};

/** The shortest interval between beats, whatever the server's settings say. */
const SHORTEST_INTERVAL_MS = 10;

/** Maximum time without an Ack, after which an agent gives up its connection. */
const LONGEST_SILENCE_MS = 20_000;

/**
 * Time within which a healthy server acknowledges a beat. An agent with a long interval must not treat the
 * connection as silent any earlier.
 */
const ANSWER_TIME_MS = 5_000;

/** Apply a server's settings. Missing values do not change the current ones. */
export function paceAfter(pace: Pace, settings: Settings | undefined): Pace {
  const set = (duration: Settings["heartbeatInterval"], current: number): number => {
    const ms = duration === undefined ? 0 : toMs(duration);
    return ms > 0 ? Math.max(SHORTEST_INTERVAL_MS, ms) : current;
  };
  return {
    heartbeatMs: set(settings?.heartbeatInterval, pace.heartbeatMs),
    infoMs: set(settings?.infoInterval, pace.infoMs),
    unhealthyAfterMs: set(settings?.unhealthyAfter, pace.unhealthyAfterMs),
  };
}

/** Apply the interval of an Ack. 0 keeps the current interval. */
export function paceAfterAck(pace: Pace, nextIntervalMs: number): Pace {
  return nextIntervalMs === 0 ? pace : { ...pace, heartbeatMs: Math.max(SHORTEST_INTERVAL_MS, nextIntervalMs) };
}

/** How long the connection can be silent: 20 s, and never more than a third of the time to UNHEALTHY. */
export function silenceLimitMs(pace: Pace): number {
  return Math.min(LONGEST_SILENCE_MS, pace.unhealthyAfterMs / 3);
}

/**
 * When a connection counts as dead, given the time of the last Ack and the time of the oldest unanswered beat. The
 * limit counts from the last Ack. If beats are further apart than the limit, the unanswered beat decides.
 */
export function silentAtMs(pace: Pace, lastAckAtMs: number, unansweredSinceMs: number): number {
  const limitMs = silenceLimitMs(pace);
  return Math.max(lastAckAtMs + limitMs, unansweredSinceMs + Math.min(limitMs, ANSWER_TIME_MS));
}
