import type { DeclaredKey } from "./keys.ts";

/** A key that was found by its own path or by an alias. */
export interface FoundKey {
  readonly key: DeclaredKey;
  /** The alias as declared; undefined when the key's own path was used. */
  readonly alias: string | undefined;
}

// Maximum number of characters to compare, to bound the cost. Every known path is shorter.
const COMPARED_LETTERS = 200;

/** Finds keys by path, ignoring case, and the nearest key for an unknown path. */
export class KeyIndex {
  readonly #found = new Map<string, FoundKey>();
  readonly #prefixes = new Set<string>();

  constructor(keys: readonly DeclaredKey[]) {
    for (const key of keys) {
      this.#add(key.path, { key, alias: undefined });
      for (const alias of key.aliases ?? []) this.#add(alias, { key, alias });
    }
  }

  find(path: string): FoundKey | undefined {
    return this.#found.get(path.toLowerCase());
  }

  /** Names without a section, as declared. */
  get bareNames(): readonly string[] {
    const names = [...this.#found.values()].map(({ key, alias }) => alias ?? key.path);
    return names.filter((name) => !name.includes("."));
  }

  /** Whether this path is a prefix of longer keys. */
  isSection(path: string): boolean {
    return this.#prefixes.has(path.toLowerCase());
  }

  /**
   * The key that was probably meant when the path was misspelled or is in the wrong section. Undefined when no key
   * is close, because a wrong guess misleads.
   *
   * @param others further candidate paths, as declared.
   */
  nearest(path: string, others: readonly string[] = []): string | undefined {
    const wanted = path.toLowerCase().slice(0, COMPARED_LETTERS);
    const own = [...this.#found.values()].map(({ key, alias }) => alias ?? key.path);
    let best: { readonly path: string; readonly score: number } | undefined;
    for (const known of [...own, ...others]) {
      const score = distanceTo(wanted, known.toLowerCase());
      if (score !== null && (best === undefined || score < best.score)) best = { path: known, score };
    }
    return best?.path;
  }

  #add(path: string, found: FoundKey): void {
    const lower = path.toLowerCase();
    const other = this.#found.get(lower);
    if (other !== undefined) {
      throw new Error(`configuration keys ${other.key.path} and ${found.key.path} share ${path}`);
    }
    this.#found.set(lower, found);
    const words = lower.split(".");
    for (let count = 1; count < words.length; count += 1) {
      this.#prefixes.add(words.slice(0, count).join("."));
    }
  }
}

/** The edit distance between a path and a known key; null when the key is too different. */
function distanceTo(wanted: string, known: string): number | null {
  const whole = editDistance(wanted, known);
  const [last, other] = [lastWord(wanted), lastWord(known)];
  const ofLast = editDistance(last, other);
  // Allow one typo per four characters. Also compare the last words, so that two different short words do not count
  // as similar because of a long common section.
  const isMisspelt = whole <= Math.min(mostSlips(wanted), MOST_SLIPS) && ofLast <= Math.max(1, last.length >> 1);
  // Recognize only a long word in another section, because many keys end in words such as Host and Port.
  const isMisplaced = last.length >= LONG_WORD && ofLast <= mostSlips(last);
  if (!isMisspelt && !isMisplaced) return null;
  return (isMisspelt ? Math.min(whole, ofLast + 1) : ofLast + 1) + whole / 1_000;
}

/** Minimum length of a word that identifies a key without its section. */
const LONG_WORD = 8;
/** Maximum number of typos, even in a long path. */
const MOST_SLIPS = 5;

function mostSlips(text: string): number {
  return Math.max(1, Math.floor(text.length / 4));
}

function lastWord(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

/**
 * The number of characters to insert, delete, replace or swap with a neighbor to turn one string into the other.
 */
export function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    rows.push(current);
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          at(row - 1, column) + 1,
          (current[column - 1] ?? 0) + 1,
          at(row - 1, column - 1) + (same ? 0 : 1),
          swapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(from.length, to.length);
}
