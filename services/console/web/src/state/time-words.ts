import { readDuration } from "@rollcall/config/duration";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A short relative time: "now", "12s ago", "3h ago", "in 5m". */
export function relativeTime(atMs: number, nowMs: number): string {
  const pastMs = nowMs - atMs;
  // Show a time slightly in the future as now, because the clocks of browser and server differ.
  if (pastMs > -2 * SECOND && pastMs < SECOND) return "now";
  return pastMs < 0 ? `in ${shortDuration(-pastMs)}` : `${shortDuration(pastMs)} ago`;
}

/** A duration in its largest unit: "12s", "3h", "21d". */
export function shortDuration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)}ms`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)}s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)}h`;
  return `${Math.floor(ms / DAY)}d`;
}

/** A time in RFC 3339 for exports; "" for none. */
export function isoTime(atMs: number | null): string {
  return atMs === null ? "" : new Date(atMs).toISOString();
}

/** How long until the text of a relative time changes, at least one second. */
export function relativeTimeLastsMs(atMs: number, nowMs: number): number {
  const distance = Math.abs(nowMs - atMs);
  if (distance < MINUTE) return SECOND;
  return distance < HOUR ? 15 * SECOND : 5 * MINUTE;
}

/** An exact time in the user's time zone, with the offset: "2026-03-01 14:05:09 +01:00". */
export function exactTime(atMs: number): string {
  const date = new Date(atMs);
  const two = (value: number) => String(Math.abs(value)).padStart(2, "0");
  const offset = -date.getTimezoneOffset();
  const zone = `${offset < 0 ? "-" : "+"}${two(Math.trunc(offset / 60))}:${two(offset % 60)}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())} ${zone}`;
}

/**
 * Parse "90s", "15m", "2h", "7d" or a sum such as "1h30m" to milliseconds; null for anything else, or without a
 * unit.
 */
export function parseDuration(text: string): number | null {
  const read = readDuration(text);
  return read.ok && read.hasUnit ? read.ms : null;
}

/** Format a duration as it is typed: "1h30m", "500ms". */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms % SECOND !== 0) return `${ms}ms`;
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(ms / DAY), "d"],
    [Math.floor((ms % DAY) / HOUR), "h"],
    [Math.floor((ms % HOUR) / MINUTE), "m"],
    [(ms % MINUTE) / SECOND, "s"],
  ];
  return parts.flatMap(([value, unit]) => (value === 0 ? [] : [`${value}${unit}`])).join("");
}
