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

  /** The path that was most likely meant; undefined when there are no keys at all. */
  nearest(path: string): string | undefined {
    const wanted = path.toLowerCase().slice(0, COMPARED_LETTERS);
    let best: { readonly path: string; readonly distance: number } | undefined;
    for (const [known, { key, alias }] of this.#found) {
      // The last word alone counts too: a key in the wrong section is still recognised.
      const whole = editDistance(wanted, known);
      const distance = Math.min(whole, editDistance(lastWord(wanted), lastWord(known)) + 1);
      const score = distance + whole / 1_000;
      if (best === undefined || score < best.distance) {
        best = { path: alias ?? key.path, distance: score };
      }
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
