const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 1e-3, ns: 1e-6 } as const;
const UNITS = ["d", "h", "m", "s", "ms"] as const;
/** Unit names as in the documentation. Short names are lower case only, because M is not a minute. */
const WORDS: readonly (readonly [RegExp, keyof typeof UNIT_MS])[] = [
  [/^(d|[Dd]ays?)$/, "d"],
  [/^(h|[Hh]rs?|[Hh]ours?)$/, "h"],
  [/^(m|[Mm]ins?|[Mm]inutes?)$/, "m"],
  [/^(s|[Ss]ecs?|[Ss]econds?)$/, "s"],
  [/^(ms|[Mm]illis|[Mm]illiseconds?)$/, "ms"],
  [/^(us|µs|μs)$/, "us"],
  [/^ns$/, "ns"],
];
const AMOUNT = String.raw`(?:\d+(?:\.\d*)?|\.\d+)`;
const WHOLE = new RegExp(String.raw`^\+?(?:${AMOUNT}\s*[A-Za-zµμ]+\s*)+$`);
const PART = new RegExp(String.raw`(${AMOUNT})\s*([A-Za-zµμ]+)`, "g");
const BARE = new RegExp(String.raw`^\+?${AMOUNT}$`);
/** Maximum length of a duration's text. The limit also bounds the cost of the repeating pattern. */
const LONGEST_TEXT = 100;
const LONGEST_MS = 315_576_000_000_000;
const NO_DURATION = "is not a duration such as 15s, 1h30m or 250ms";

/** The duration, or why it is invalid: a phrase that follows the text of the duration. */
export type ReadDuration =
  | { readonly ok: true; readonly ms: number; readonly hasUnit: boolean }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string) => ({ ok: false, problem }) as const;

/**
 * Parse a duration as Go does ("15s", "1h30m", "250ms", "1.5s", ".5h"), and also with days and words ("2d", "15
 * seconds", "1 hour 30 minutes"). A bare number means seconds. Rounded to whole milliseconds.
 */
export function readDuration(text: string): ReadDuration {
  const trimmed = text.trim();
  if (trimmed.length > LONGEST_TEXT) return refused(NO_DURATION);
  if (BARE.test(trimmed)) return inMs(Number(trimmed) * UNIT_MS.s, false);
  if (/^[-−]/.test(trimmed) && WHOLE.test(trimmed.slice(1))) return refused("is negative");
  if (!WHOLE.test(trimmed)) return refused(NO_DURATION);
  let ms = 0;
  for (const [, amount, word = ""] of trimmed.matchAll(PART)) {
    const unit = WORDS.find(([pattern]) => pattern.test(word))?.[1];
    if (unit === undefined) return refused(`${NO_DURATION}: the units are ms, s, m, h and d`);
    ms += Number(amount) * UNIT_MS[unit];
  }
  return inMs(ms, true);
}

function inMs(ms: number, hasUnit: boolean): ReadDuration {
  // Do not round a tiny limit to 0, which can mean "no limit" or "never".
  if (ms > 0 && ms < 1) return refused("is shorter than a millisecond");
  if (ms > LONGEST_MS) return refused("is longer than 10,000 years");
  return { ok: true, ms: Math.round(ms), hasUnit };
}

/** Format milliseconds so that readDuration() parses them, for example "1h30m" or "250ms". */
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
