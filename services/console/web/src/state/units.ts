const STEP = 1024;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Format bytes in a suitable unit: "16 GiB", "1.5 TiB". */
export function formatBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= STEP && unit < UNITS.length - 1) {
    value /= STEP;
    unit += 1;
  }
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** Format a count with separators: "50,000". */
export function formatCount(value: number): string {
  return value.toLocaleString("en-US");
}

/** Format a count with its noun: "1 node", "1,200 nodes". */
export function countOf(value: number, one: string): string {
  return `${formatCount(value)} ${value === 1 ? one : `${one}s`}`;
}

/** Format thousandths of a processor as processors: "0.5", "16". */
export function formatMillicores(millicores: number): string {
  return String(Math.round(millicores / 10) / 100);
}

/** Format a percentage from 0 to 100: "7%". */
export function formatPercent(percent: number): string {
  return `${Math.round(percent)}%`;
}

/** A part of a whole as a percentage; 0 when the whole is 0. */
export function percentOf(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(100, (part / whole) * 100);
}
