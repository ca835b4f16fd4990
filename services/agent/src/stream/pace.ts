import type { Settings } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toMs } from "./hello.ts";

/** How a session keeps time, as the server set it. */
export interface Pace {
  readonly heartbeatMs: number;
  /** Between reports of what the node is. */
  readonly infoMs: number;
  /** Silence after which the node would be declared UNHEALTHY. */
  readonly unhealthyAfterMs: number;
}

/** What a session keeps to until it is told otherwise. */
export const DEFAULT_PACE: Pace = {
  heartbeatMs: 15_000,
  infoMs: 60_000,
  unhealthyAfterMs: 60_000,
};

/** Nothing that a server says makes an agent beat more often than this. */
const SHORTEST_INTERVAL_MS = 10;

/** An agent that has had no Ack for so long leaves its connection. */
const LONGEST_SILENCE_MS = 20_000;

/** A healthy server answers a beat within this time; a stretched interval must not be taken for silence before. */
const ANSWER_TIME_MS = 5_000;

/** Take over what a server sets; what it leaves out stays. */
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

/** Take over the interval of an Ack; 0 leaves it as it is. */
export function paceAfterAck(pace: Pace, nextIntervalMs: number): Pace {
  return nextIntervalMs === 0 ? pace : { ...pace, heartbeatMs: Math.max(SHORTEST_INTERVAL_MS, nextIntervalMs) };
}

/** How long the path may be silent: 20 s, and never more than a third of the time to UNHEALTHY. */
export function silenceLimitMs(pace: Pace): number {
  return Math.min(LONGEST_SILENCE_MS, pace.unhealthyAfterMs / 3);
}

/**
 * When a path counts as dead, given the time of the last Ack and of the oldest beat that has had none since. The
 * limit runs from the last Ack; where beats are further apart than that, it is the missing answer that counts.
 */
export function silentAtMs(pace: Pace, lastAckAtMs: number, unansweredSinceMs: number): number {
  const limitMs = silenceLimitMs(pace);
  return Math.max(lastAckAtMs + limitMs, unansweredSinceMs + Math.min(limitMs, ANSWER_TIME_MS));
}
