import { parseDurationMs, UsageError } from "../failure.ts";

const DURATION = /^\d+(?:\.\d+)?(?:ms|s|m|h|d)$/;
const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i;

/**
 * Read a point in time: a duration before now, or RFC 3339, or a day in UTC. Milliseconds since 1970. Throws
 * UsageError.
 */
export function parseMoment(option: string, text: string, nowMs: number): number {
  if (DURATION.test(text)) return nowMs - parseDurationMs(option, text);
  const atMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(atMs)) return atMs;
  throw new UsageError(
    `cannot use '${text}' as ${option} value, should be a duration ago such as 1h, or a time such as 2026-05-01T12:00:00Z`,
  );
}
