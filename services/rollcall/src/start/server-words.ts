/**
 * The words that call for the program of the servers: their verbs, and what asks them for their settings or flags. A
 * command line that has one of them anywhere gets that program, which has every verb there is; all others get the
 * command line alone, which starts in half the time.
 */
export const SERVER_WORDS: ReadonlySet<string> = new Set([
  "up",
  "serve",
  "migrate",
  "backup",
  "restore",
  "agent",
  "keeper",
  "config",
  "__complete",
]);

/** Whether these arguments are for the program of the servers. */
export function isForServers(words: readonly string[]): boolean {
  return words.some((word) => SERVER_WORDS.has(word));
}
