import type { Stated } from "@rollcall/domain";

/**
 * Maximum number of cached strings. When the cache is full, it is emptied. Membership and health use a few
 * dozen strings.
 */
const MOST_TEXTS = 1_000;
/** Maximum length of a cached string, in characters. Longer strings are specific to one node. */
const LONGEST_TEXT = 200;

const texts = new Map<string, string>();

/**
 * Return the same state with strings that nodes share. A replica keeps a state for each node that it holds,
 * and each row read from the store has separate copies of the strings.
 */
export function withSharedTexts<S extends string>(stated: Stated<S>): Stated<S> {
  return {
    state: shared(stated.state) as S,
    sinceMs: stated.sinceMs,
    reason: shared(stated.reason),
    message: shared(stated.message),
    actor: shared(stated.actor),
  };
}

function shared(text: string): string {
  const known = texts.get(text);
  if (known !== undefined || text.length > LONGEST_TEXT) return known ?? text;
  if (texts.size >= MOST_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}
