import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

/** Bytes for people, in steps of 1024 and with three figures: "31.3 GiB". */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1023.95 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const figures = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(figures)} ${BYTE_UNITS[unit] ?? "B"}`;
}

/** A duration for people in its largest whole unit: "0s", "42s", "3m", "5h", "12d". */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** The exact duration of a setting: "1m30s", "500ms". */
export function formatExactDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  return parts.map(([amount, unit]) => (amount > 0 ? `${amount}${unit}` : "")).join("");
}

/** A point in time for people: "2026-08-06 12:03:04Z". */
export function formatTime(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/**
 * A point in time for people and programs, with milliseconds; empty when `time` is
 * undefined.
 */
export function isoTime(time: Timestamp | undefined): string {
  return time === undefined ? "" : new Date(timestampMs(time)).toISOString();
}

/** A percentage of 0 to 100, rounded. */
export function formatPercent(percent: number): string {
  return `${Math.round(percent)}%`;
}
