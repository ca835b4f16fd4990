/** Something that can be found by its words. */
export interface Findable {
  readonly title: string;
  readonly about: string;
}

/** Find by words in any order: those that begin a title come first, then those found in it, then the rest. */
export function find<T extends Findable>(items: Iterable<T>, query: string, most: number): readonly T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found: { readonly item: T; readonly rank: number }[] = [];
  for (const item of items) {
    const [title, about] = [item.title.toLowerCase(), item.about.toLowerCase()];
    if (!words.every((word) => title.includes(word) || about.includes(word))) continue;
    const first = words[0] ?? "";
    found.push({ item, rank: title.startsWith(first) ? 0 : title.includes(first) ? 1 : 2 });
    // Enough of the best: the rest cannot be better than those.
    if (found.length >= MOST_FOUND) break;
  }
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ item }) => item);
}

const MOST_FOUND = 1000;
