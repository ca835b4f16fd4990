/** An item that can be found by its words. */
export interface Findable {
  readonly title: string;
  readonly about: string;
}

/**
 * Find items by words in any order. Matches at the start of a title come first, then matches within a
 * title, then the rest.
 */
export function find<T extends Findable>(items: Iterable<T>, query: string, most: number): readonly T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found: { readonly item: T; readonly rank: number }[] = [];
  for (const item of items) {
    const [title, about] = [item.title.toLowerCase(), item.about.toLowerCase()];
    if (!words.every((word) => title.includes(word) || about.includes(word))) continue;
    const first = words[0] ?? "";
    found.push({ item, rank: title.startsWith(first) ? 0 : title.includes(first) ? 1 : 2 });
    // Stop after many matches, to bound the work. A later item may be a better match.
    if (found.length >= MOST_FOUND) break;
  }
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ item }) => item);
}

const MOST_FOUND = 1000;
