import type { Refusal } from "./refusal.ts";

/** Add the most likely intended name to a refusal for an unknown name, if a candidate is close enough. */
export function suggestName<Reason extends string>(
  refusal: Refusal<Reason>,
  given: string,
  candidates: readonly string[],
): Refusal<Reason> {
  const suggestion = closestName(given, candidates);
  if (suggestion === null) return refusal;
  const { reason, message, metadata } = refusal;
  return { reason, message: `${message}; did you mean ${suggestion}?`, metadata: { ...metadata, suggestion } };
}

/**
 * The existing name that a caller most likely meant: one that starts with the given text, or that differs from it in
 * a few characters. Null if none is close. Of equally close names, the alphabetically first is chosen.
 */
export function closestName(given: string, candidates: readonly string[]): string | null {
  let best: { readonly name: string; readonly distance: number } | null = null;
  for (const name of candidates) {
    const distance = distanceBetween(given, name);
    if (distance === null) continue;
    if (best === null || distance < best.distance || (distance === best.distance && name < best.name)) {
      best = { name, distance };
    }
  }
  return best?.name ?? null;
}

/** Minimum length of a prefix. A shorter prefix matches too many names. */
const LEAST_BEGINNING = 2;

/** The distance between two names; null if neither is a likely misspelling of the other. */
function distanceBetween(given: string, name: string): number | null {
  const [from, to] = [given.toLowerCase(), name.toLowerCase()];
  if (from.length >= LEAST_BEGINNING && to.startsWith(from)) return to.length - from.length;
  const shorter = Math.min(from.length, to.length);
  const most = Math.max(1, Math.floor(shorter / 4));
  if (shorter <= 1 || Math.abs(from.length - to.length) > most) return null;
  const distance = editDistance(from, to);
  return distance <= most ? distance : null;
}

/**
 * Replacing one digit with another costs more, because names such as n1 and n2 are different machines rather than a
 * typo.
 */
function replacementCost(one: string, other: string): number {
  if (one === other) return 0;
  return /^\d\d$/.test(one + other) ? 2 : 1;
}

/**
 * The minimum cost to turn one name into the other by inserting, deleting and replacing characters and swapping
 * adjacent ones.
 */
function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = replacementCost(from[row - 1] ?? "", to[column - 1] ?? "");
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          (last[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (last[column - 1] ?? 0) + replaced,
          isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
