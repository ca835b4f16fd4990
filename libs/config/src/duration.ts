const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;
const UNITS = ["d", "h", "m", "s", "ms"] as const;
/** Words for the units, as documentation writes them. The short ones are in small letters: M is no minute. */
const WORDS: readonly (readonly [RegExp, keyof typeof UNIT_MS])[] = [
  [/^(d|[Dd]ays?)$/, "d"],
  [/^(h|[Hh]rs?|[Hh]ours?)$/, "h"],
  [/^(m|[Mm]ins?|[Mm]inutes?)$/, "m"],
  [/^(s|[Ss]ecs?|[Ss]econds?)$/, "s"],
  [/^(ms|[Mm]illis|[Mm]illiseconds?)$/, "ms"],
];
const WHOLE = /^(?:\d+(?:\.\d+)?\s*[A-Za-z]+\s*)+$/;
const PART = /(\d+(?:\.\d+)?)\s*([A-Za-z]+)/g;

/**
 * Read a duration: "15s", "1m", "1h30m", "250ms", "1.5s", "2d", "15 seconds", "1 hour 30 minutes", or a bare number of
 * seconds. Answers milliseconds, rounded to whole ones; null for anything else.
 */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * UNIT_MS.s);
  // No duration is longer, and a pattern that repeats must not be given a long text.
  if (trimmed.length > LONGEST_TEXT || !WHOLE.test(trimmed)) return null;
  let ms = 0;
  for (const [, amount, word = ""] of trimmed.matchAll(PART)) {
    const unit = WORDS.find(([pattern]) => pattern.test(word))?.[1];
    if (unit === undefined) return null;
    ms += Number(amount) * UNIT_MS[unit];
  }
  return Math.round(ms);
}

const LONGEST_TEXT = 100;

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
