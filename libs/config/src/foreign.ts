import type { Written } from "./value-types.ts";

/** A value that a file gives to a key of another program. */
export interface ForeignValue {
  /** The key, or the section that holds it, as the other program spells it. */
  readonly path: string;
  readonly written: Written;
  /** "bacalhau.yaml:12". */
  readonly where: string;
}

/** What a key of another program means here. */
export type ForeignMeaning =
  /** The same as this key of ours with this value, unless that key is given itself. */
  | {
      readonly kind: "sets";
      readonly path: string;
      readonly written: Written;
      /** What the reader should know of it; empty when there is nothing to say. */
      readonly note: string;
    }
  /** Nothing; and why. */
  | {
      readonly kind: "nothing";
      readonly why: string;
      /** Whether it protects something in the other program, so that ignoring it needs a warning. Default: false. */
      readonly isProtection?: boolean;
    }
  /** It would mean something, but not as it is written. */
  | { readonly kind: "problem"; readonly message: string };

/** The rest of the configuration, for deciding what a value of another program means. */
export interface ForeignSurroundings {
  /** What a key of ours is set to, by any source or by another key of theirs; undefined when nothing sets it. */
  ours(path: string): Written | undefined;
  /** What the file gives to another key of theirs, spelled as declared; undefined when it does not name it. */
  theirs(path: string): Written | undefined;
}

/** A key, or a whole section, of another program. */
export interface ForeignKey {
  /** A section stands for all that is below it. */
  readonly path: string;
  /** Decide what a value means. Whether it is safe can depend on the rest of the configuration. */
  meaning(written: Written, surroundings: ForeignSurroundings): ForeignMeaning;
}

/** Finds the keys of other programs, without regard to case. */
export class ForeignIndex {
  readonly #keys: ReadonlyMap<string, ForeignKey>;
  readonly #prefixes: ReadonlySet<string>;

  constructor(keys: readonly ForeignKey[]) {
    this.#keys = new Map(keys.map((key) => [key.path.toLowerCase(), key]));
    this.#prefixes = new Set([...this.#keys.keys()].flatMap(prefixesOf));
  }

  /** Whether the keys of longer paths go on from this one. */
  isAbove(path: string): boolean {
    return this.#prefixes.has(path.toLowerCase());
  }

  /** The key of this path, or of the section that it lies in. */
  find(path: string): ForeignKey | undefined {
    const words = path.toLowerCase().split(".");
    for (let count = words.length; count > 0; count -= 1) {
      const key = this.#keys.get(words.slice(0, count).join("."));
      if (key !== undefined) return key;
    }
    return undefined;
  }

  /** What a value means. */
  meaningOf(value: ForeignValue, surroundings: ForeignSurroundings): ForeignMeaning {
    const key = this.find(value.path);
    if (key === undefined) return { kind: "nothing", why: "" };
    return key.meaning(value.written, surroundings);
  }

  /** Every path, as declared. */
  get paths(): readonly string[] {
    return [...this.#keys.values()].map(({ path }) => path);
  }
}

function prefixesOf(path: string): readonly string[] {
  const words = path.split(".");
  return words.slice(1).map((_, at) => words.slice(0, at + 1).join("."));
}

/** No other program's keys. */
export const NO_FOREIGN_KEYS = new ForeignIndex([]);
