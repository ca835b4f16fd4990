/** Format a time in milliseconds since 1970 as RFC 3339 in UTC, with milliseconds: "2026-01-31T23:59:59.000Z". */
export function isoTime(atMs: number): string {
  const days = Math.floor(atMs / DAY_MS);
  const ofDayMs = atMs - days * DAY_MS;
  const [year, month, day] = civilOf(days);
  const hours = Math.floor(ofDayMs / 3_600_000);
  const minutes = Math.floor(ofDayMs / 60_000) % 60;
  const seconds = Math.floor(ofDayMs / 1000) % 60;
  const date = `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`;
  return `${date}T${pad(hours, 2)}:${pad(minutes, 2)}:${pad(seconds, 2)}.${pad(Math.floor(ofDayMs % 1000), 3)}Z`;
}

const DAY_MS = 86_400_000;
/** Days in 400 years. The Gregorian calendar repeats every 400 years. */
const ERA_DAYS = 146_097;
/**
 * Days from 1 March of year 0 to 1 January 1970. Years start in March here, so that the leap day is the last day.
 */
const DAYS_BEFORE_1970 = 719_468;

/**
 * The Gregorian date of a day, counted from 1 January 1970. The domain must not use Date, because Date can also
 * read the clock.
 */
function civilOf(days: number): readonly [year: number, month: number, day: number] {
  const sinceMarch = days + DAYS_BEFORE_1970;
  const era = Math.floor(sinceMarch / ERA_DAYS);
  const ofEra = sinceMarch - era * ERA_DAYS;
  const leapDays = Math.floor(ofEra / 1_460) - Math.floor(ofEra / 36_524) + Math.floor(ofEra / 146_096);
  const yearOfEra = Math.floor((ofEra - leapDays) / 365);
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * ofYear + 2) / 153);
  const day = ofYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  return [yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day];
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, "0");
}
