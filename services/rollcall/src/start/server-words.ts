/**
 * Words that need the servers' program: its verbs, and verbs that read the settings or flags of servers. A
 * command line that contains one of these words anywhere runs that program, which has every verb. Any other runs
 * only the command line's program, which starts in half the time.
 */
export const SERVER_WORDS: ReadonlySet<string> = new Set([
  "up",
  "demo",
  "serve",
  "migrate",
  "backup",
  "restore",
  "agent",
  "keeper",
  "config",
  // The option of `doctor` that includes the configuration.
  "--bundle",
  "__complete",
]);

/** Whether these arguments need the servers' program. */
export function isForServers(words: readonly string[]): boolean {
  return words.some((word) => SERVER_WORDS.has(word.split("=", 1)[0] ?? ""));
}
