import type { Written } from "./value-types.ts";

/** A value that a file sets for another program's key. */
export interface ForeignValue {
  /** The key, or the section that contains it, as the other program spells it. */
  readonly path: string;
  readonly written: Written;
  /** "bacalhau.yaml:12". */
  readonly where: string;
}

export type ForeignMeaning =
  /** The value sets this key of Rollcall to this value, unless the key is set explicitly. */
  | {
      readonly kind: "sets";
      readonly path: string;
      readonly written: Written;
      /** A remark for the reader; may be empty. */
      readonly note: string;
    }
  /** Nothing; and why. */
  | {
      readonly kind: "nothing";
      readonly why: string;
      /**
       * Whether the key protects something in the other program, so that ignoring the key requires a warning.
       * Default: false.
       */
      readonly isProtection?: boolean;
    }
  /** One of Rollcall's keys is equivalent, but the value is not usable. */
  | { readonly kind: "problem"; readonly message: string };

/** The rest of the configuration. The meaning of a foreign value can depend on it. */
export interface ForeignSurroundings {
  /** The value of one of Rollcall's keys, from any source or from another foreign key; undefined when unset. */
  ours(path: string): Written | undefined;
  /** The file's value for another foreign key, spelled as declared; undefined when absent. */
  theirs(path: string): Written | undefined;
}

/** A key or a whole section of another program. */
export interface ForeignKey {
  /** The path of the key or section. A section includes everything below it. */
  readonly path: string;
  /**
   * Return what a value means here. This can depend on the rest of the configuration, for example whether the value
   * is safe.
   */
  meaning(written: Written, surroundings: ForeignSurroundings): ForeignMeaning;
}

/** Finds other programs' keys by path, ignoring case. */
export class ForeignIndex {
  readonly #keys: ReadonlyMap<string, ForeignKey>;
  readonly #prefixes: ReadonlySet<string>;

  constructor(keys: readonly ForeignKey[]) {
    this.#keys = new Map(keys.map((key) => [key.path.toLowerCase(), key]));
    this.#prefixes = new Set([...this.#keys.keys()].flatMap(prefixesOf));
  }

  /** Whether this path is a prefix of longer keys. */
  isAbove(path: string): boolean {
    return this.#prefixes.has(path.toLowerCase());
  }

  /** The key with this path, or the section that contains it. */
  find(path: string): ForeignKey | undefined {
    const words = path.toLowerCase().split(".");
    for (let count = words.length; count > 0; count -= 1) {
      const key = this.#keys.get(words.slice(0, count).join("."));
      if (key !== undefined) return key;
    }
    return undefined;
  }

  meaningOf(value: ForeignValue, surroundings: ForeignSurroundings): ForeignMeaning {
    const key = this.find(value.path);
    if (key === undefined) return { kind: "nothing", why: "" };
    return key.meaning(value.written, surroundings);
  }

  /** All paths, as declared. */
  get paths(): readonly string[] {
    return [...this.#keys.values()].map(({ path }) => path);
  }
}

function prefixesOf(path: string): readonly string[] {
  const words = path.split(".");
  return words.slice(1).map((_, at) => words.slice(0, at + 1).join("."));
}

export const NO_FOREIGN_KEYS = new ForeignIndex([]);
