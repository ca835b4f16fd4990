import type { Stated } from "@rollcall/domain";

/** So many different texts are remembered; then it is emptied. Those of memberships and health are some dozens. */
const MOST_TEXTS = 1_000;
/** Longer ones are of one node's own. */
const LONGEST_TEXT = 200;

const texts = new Map<string, string>();

/**
 * The same state with texts that are the same strings for all nodes: a replica keeps it for each that it holds, and
 * what is read from the record is a copy of its own for each row.
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
