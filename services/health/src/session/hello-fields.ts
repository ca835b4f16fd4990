import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NO_WISHES, type Wishes } from "@rollcall/domain";

/** The intervals that an agent requests; invalid ones are ignored. */
export function wishesIn({ wishedHeartbeatInterval, wishedInfoInterval }: Hello): Wishes {
  // Nearly all agents request no intervals. Share one object, because it is kept as long as the node is held.
  if (wishedHeartbeatInterval === undefined && wishedInfoInterval === undefined) return NO_WISHES;
  return { heartbeatMs: wishedMs(wishedHeartbeatInterval), infoMs: wishedMs(wishedInfoInterval) };
}

function wishedMs(interval: Duration | undefined): number | null {
  const ms = interval === undefined ? 0 : durationMs(interval);
  return Number.isSafeInteger(ms) && ms > 0 ? Math.min(ms, LONGEST_WISH_MS) : null;
}

/** The longest interval that a policy can have. */
const LONGEST_WISH_MS = 86_400_000;

/** The largest skew that is reported: a hundred years. Larger skews are limited to it. */
const MOST_SKEW_MS = 100 * 365 * 86_400_000;

/**
 * How far an agent's clock is ahead, from the wall time that it sent; null if it sent none. The frame's latency is
 * not subtracted, which is accurate enough for display.
 */
export function clockSkewMs({ agentTimeMs }: { readonly agentTimeMs: bigint }, wallMs: number): number | null {
  if (agentTimeMs === 0n) return null;
  const skewMs = Math.round(Number(agentTimeMs) - wallMs);
  return Math.max(-MOST_SKEW_MS, Math.min(MOST_SKEW_MS, skewMs));
}

/** Replace U+0000 in an agent's string, because Postgres refuses it, and one refused row fails a whole batch. */
export function toText(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
