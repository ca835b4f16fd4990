import type { DeclaredKey } from "./keys.ts";

/** A key as it was found: by its own path, or by one of its aliases. */
export interface FoundKey {
  readonly key: DeclaredKey;
  /** The alias as declared; undefined when the key's own path was used. */
  readonly alias: string | undefined;
}

// Longer than any path; only bounds the cost of comparing.
const COMPARED_LETTERS = 200;

/** Finds keys by path without regard to case, and the nearest one for a path that is none. */
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

  /** The names without a section, as declared. */
  get bareNames(): readonly string[] {
    const names = [...this.#found.values()].map(({ key, alias }) => alias ?? key.path);
    return names.filter((name) => !name.includes("."));
  }

  /** Whether longer paths go on from this one. */
  isSection(path: string): boolean {
    return this.#prefixes.has(path.toLowerCase());
  }

  /**
   * The path that was most likely meant: a misspelt key, or one in the wrong section. Undefined where no key is close,
   * since a wrong guess misleads.
   *
   * @param others further paths that could be meant, as declared.
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

/** The edit distance from what was written to a key; null when the key cannot have been meant. */
function distanceTo(wanted: string, known: string): number | null {
  const whole = editDistance(wanted, known);
  const [last, other] = [lastWord(wanted), lastWord(known)];
  const ofLast = editDistance(last, other);
  // One typing error per four letters. A long common path does not make two short words similar.
  const isMisspelt = whole <= Math.min(mostSlips(wanted), MOST_SLIPS) && ofLast <= Math.max(1, last.length >> 1);
  // Words such as Host and Port end many keys: only a long one is recognised in another section.
  const isMisplaced = last.length >= LONG_WORD && ofLast <= mostSlips(last);
  if (!isMisspelt && !isMisplaced) return null;
  return (isMisspelt ? Math.min(whole, ofLast + 1) : ofLast + 1) + whole / 1_000;
}

/** Letters of a word that tells more than its section. */
const LONG_WORD = 8;
/** Most typing errors, also in a long path. */
const MOST_SLIPS = 5;

function mostSlips(text: string): number {
  return Math.max(1, Math.floor(text.length / 4));
}

function lastWord(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

/** How many letters must be added, dropped, replaced or swapped with their neighbour to make one text of another. */
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
