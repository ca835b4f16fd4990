import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Hello } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Wishes } from "@rollcall/domain";

/** The intervals that an agent wishes for; what makes no sense counts as none. */
export function wishesIn({ wishedHeartbeatInterval, wishedInfoInterval }: Hello): Wishes {
  return { heartbeatMs: wishedMs(wishedHeartbeatInterval), infoMs: wishedMs(wishedInfoInterval) };
}

function wishedMs(interval: Duration | undefined): number | null {
  const ms = interval === undefined ? 0 : durationMs(interval);
  return Number.isSafeInteger(ms) && ms > 0 ? Math.min(ms, LONGEST_WISH_MS) : null;
}

/** As long as a policy's interval may be. */
const LONGEST_WISH_MS = 86_400_000;

/** A clock that is further off than a hundred years tells nothing. */
const MOST_SKEW_MS = 100 * 365 * 86_400_000;

/**
 * By how much an agent's clock is ahead, from the wall time that it sent; null when it sent none. The way of the frame
 * is in it, which is good enough for what is only shown.
 */
export function clockSkewMs({ agentTimeMs }: { readonly agentTimeMs: bigint }, wallMs: number): number | null {
  if (agentTimeMs === 0n) return null;
  const skewMs = Math.round(Number(agentTimeMs) - wallMs);
  return Math.max(-MOST_SKEW_MS, Math.min(MOST_SKEW_MS, skewMs));
}

/**
 * A text of an agent as the record can keep it: Postgres refuses U+0000, and one row that it refuses fails a whole
 * batch.
 */
export function toText(text: string): string {
  return text.replaceAll("\0", "\uFFFD");
}
