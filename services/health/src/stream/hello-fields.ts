import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import { NO_WISHES, type Wishes } from "@rollcall/domain";

/** The intervals that an agent wishes for; invalid ones are ignored. */
export function wishesIn({ wishedHeartbeatInterval, wishedInfoInterval }: Hello): Wishes {
  // Nearly all wish for nothing, and what they wish is kept for as long as they are held.
  if (wishedHeartbeatInterval === undefined && wishedInfoInterval === undefined) return NO_WISHES;
  return { heartbeatMs: wishedMs(wishedHeartbeatInterval), infoMs: wishedMs(wishedInfoInterval) };
}

function wishedMs(interval: Duration | undefined): number | null {
  const ms = interval === undefined ? 0 : durationMs(interval);
  return Number.isSafeInteger(ms) && ms > 0 ? Math.min(ms, LONGEST_WISH_MS) : null;
}

/** The longest interval of a policy. */
const LONGEST_WISH_MS = 86_400_000;

/** A skew beyond a hundred years is ignored. */
const MOST_SKEW_MS = 100 * 365 * 86_400_000;

/**
 * How far an agent's clock is ahead, by the wall time that it sent; null for none. It includes the frame's latency,
 * which is good enough for display.
 */
export function clockSkewMs({ agentTimeMs }: { readonly agentTimeMs: bigint }, wallMs: number): number | null {
  if (agentTimeMs === 0n) return null;
  const skewMs = Math.round(Number(agentTimeMs) - wallMs);
  return Math.max(-MOST_SKEW_MS, Math.min(MOST_SKEW_MS, skewMs));
}

/** Remove U+0000 from an agent's text: Postgres refuses it, and one refused row fails a whole batch. */
export function toText(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
