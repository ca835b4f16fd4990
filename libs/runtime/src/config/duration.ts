const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
const UNITS = ["d", "h", "m", "s", "ms"] as const;
const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/;
const PART = /(\d+(?:\.\d+)?)(ms|[dhms])/g;

/**
 * Read a duration: "15s", "1m", "1h30m", "250ms", "1.5s", "2d", or a bare number of seconds.
 * Answers milliseconds, rounded to whole ones; null for anything else.
 */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * UNIT_MS.s);
  if (!WHOLE.test(trimmed)) return null;
  let ms = 0;
  for (const [, amount, unit] of trimmed.matchAll(PART)) {
    ms += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  return Math.round(ms);
}

/** Write milliseconds as parseDuration() reads them, for example "1h30m" or "250ms". */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  let left = ms;
  let text = "";
  for (const unit of UNITS) {
    const amount = Math.floor(left / UNIT_MS[unit]);
    if (amount > 0) text += `${amount}${unit}`;
    left -= amount * UNIT_MS[unit];
  }
  return text;
}
