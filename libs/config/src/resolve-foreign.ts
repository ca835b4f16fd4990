import type { Assignment, Problem } from "./assignment.ts";
import type { ForeignIndex, ForeignSurroundings, ForeignValue } from "./foreign.ts";
import type { KeyIndex } from "./key-index.ts";
import type { Written } from "./value-types.ts";

/** A key of another program that has no meaning here. */
export interface LeftAside {
  readonly path: string;
  readonly where: string;
  /** A human-readable reason; may be empty. */
  readonly why: string;
  /** Whether the key protects something in the other program. */
  readonly isProtection: boolean;
}

/** A key of another program that was read as one of Rollcall's keys. */
export interface ReadAs {
  readonly path: string;
  readonly where: string;
  readonly ours: string;
  /** A human-readable remark; may be empty. */
  readonly note: string;
}

/** The meaning of a file's foreign keys. */
export interface ForeignOutcome {
  readonly assignments: readonly Assignment[];
  readonly leftAside: readonly LeftAside[];
  readonly readAs: readonly ReadAs[];
  readonly problems: readonly Problem[];
}

/**
 * Interpret other programs' keys. If any source sets Rollcall's own key, that value takes precedence.
 */
export function resolveForeign(
  values: readonly ForeignValue[],
  keys: { readonly foreign: ForeignIndex; readonly own: KeyIndex },
  given: ReadonlyMap<string, Assignment>,
): ForeignOutcome {
  const assignments = new Map<string, Assignment>();
  const leftAside: LeftAside[] = [];
  const readAs: ReadAs[] = [];
  const problems: Problem[] = [];
  const surroundings = surroundingsOf(values, keys.foreign, given);
  for (const value of values) {
    const { path, where } = value;
    const meaning = keys.foreign.meaningOf(value, surroundings);
    switch (meaning.kind) {
      case "problem":
        problems.push({ where, path, message: meaning.message });
        break;
      case "nothing":
        leftAside.push({ path, where, why: meaning.why, isProtection: meaning.isProtection ?? false });
        break;
      case "sets": {
        const { path: ours, written, note } = meaning;
        const key = keys.own.find(ours)?.key;
        // Ignore the value, because this process does not declare the key.
        if (key === undefined) break;
        if (given.has(ours) || assignments.has(ours)) {
          leftAside.push({ path, where, why: `${ours} is set as well`, isProtection: false });
          break;
        }
        assignments.set(ours, { found: { key, alias: path }, written, where });
        readAs.push({ path, where, ours, note });
        break;
      }
    }
  }
  return { assignments: [...assignments.values()], leftAside, readAs, problems };
}

/**
 * The configuration that the meaning of a foreign value can depend on. The order of keys in the file
 * does not matter.
 */
function surroundingsOf(
  values: readonly ForeignValue[],
  foreign: ForeignIndex,
  given: ReadonlyMap<string, Assignment>,
): ForeignSurroundings {
  const raw = new Map(values.map(({ path, written }) => [path.toLowerCase(), written]));
  const theirs = (path: string) => raw.get(path.toLowerCase());
  const alone = { ours: (path: string) => given.get(path)?.written, theirs };
  const set = new Map<string, Written>();
  for (const value of values) {
    const meaning = foreign.meaningOf(value, alone);
    if (meaning.kind === "sets" && !set.has(meaning.path)) set.set(meaning.path, meaning.written);
  }
  return { ours: (path) => alone.ours(path) ?? set.get(path), theirs };
}

const MOST_NAMES = 40;

/** One warning for all foreign keys of a file; empty when there is nothing to warn about. */
export function foreignWarning(file: string, outcome: ForeignOutcome): readonly Problem[] {
  const { leftAside, readAs } = outcome;
  const aside = [...new Set(leftAside.map(({ path }) => path))];
  const told = readAs.filter(({ note }) => note !== "");
  const protections = leftAside.filter(({ isProtection }) => isProtection).slice(0, MOST_NAMES);
  const parts = [
    ...(aside.length === 0 ? [] : [`ignored, because Rollcall does not use them: ${some(aside)}`]),
    ...protections.map(({ path, why }) => `${path} is a security setting that has no effect here: ${why}`),
    ...told.map(({ path, ours, note }) => `${path} is read as ${ours}: ${note}`),
  ];
  if (parts.length === 0) return [];
  const message =
    `keys of another program: ${parts.join("; ")} (run \`rollcall config convert ${file}\` for the ` +
    "reasons and a converted file)";
  return [{ where: file, message }];
}

function some(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(", ");
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
