/**
 * Split a batch into rounds in which each key occurs once, keeping the order of each key's items: one statement cannot
 * write one row twice.
 */
export function inRounds<T>(items: readonly T[], keyOf: (item: T) => string): readonly (readonly T[])[] {
  const rounds: T[][] = [];
  const turns = new Map<string, number>();
  for (const item of items) {
    const key = keyOf(item);
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    const round = rounds[turn];
    if (round === undefined) rounds.push([item]);
    else round.push(item);
  }
  return rounds;
}
