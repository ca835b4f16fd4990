import type { Assignment, Problem } from "./assignment.ts";
import type { ForeignIndex, ForeignValue } from "./foreign.ts";
import type { KeyIndex } from "./key-index.ts";

/** A key of another program that means nothing here. */
export interface LeftAside {
  readonly path: string;
  readonly where: string;
  /** For people; empty when there is nothing to say. */
  readonly why: string;
}

/** A key of another program that was read as one of ours. */
export interface ReadAs {
  readonly path: string;
  readonly where: string;
  readonly ours: string;
  /** For people; empty when there is nothing to say. */
  readonly note: string;
}

/** What the keys of other programs in a file mean. */
export interface ForeignOutcome {
  readonly assignments: readonly Assignment[];
  readonly leftAside: readonly LeftAside[];
  readonly readAs: readonly ReadAs[];
  readonly problems: readonly Problem[];
}

/**
 * Find out what keys of other programs mean. A key of ours that is given itself, whatever the source, wins over theirs.
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
  // What one of their keys sets is set for the others, wherever it stands in the file.
  const theirs = new Set(
    values.flatMap((value) => {
      const meaning = keys.foreign.meaningOf(value, (ours) => given.has(ours));
      return meaning.kind === "sets" ? [meaning.path] : [];
    }),
  );
  const isSet = (ours: string) => given.has(ours) || theirs.has(ours);
  for (const value of values) {
    const { path, where } = value;
    const meaning = keys.foreign.meaningOf(value, isSet);
    switch (meaning.kind) {
      case "problem":
        problems.push({ where, path, message: meaning.message });
        break;
      case "nothing":
        leftAside.push({ path, where, why: meaning.why });
        break;
      case "sets": {
        const { path: ours, written, note } = meaning;
        const key = keys.own.find(ours)?.key;
        // A process that has no such key has no use for the value.
        if (key === undefined) break;
        if (given.has(ours) || assignments.has(ours)) {
          leftAside.push({ path, where, why: `${ours} is set besides` });
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

const MOST_NAMES = 40;

/** The one warning about the keys of other programs in a file; none when it holds none. */
export function foreignWarning(file: string, outcome: ForeignOutcome): readonly Problem[] {
  const { leftAside, readAs } = outcome;
  const aside = [...new Set(leftAside.map(({ path }) => path))];
  const told = readAs.filter(({ note }) => note !== "");
  const parts = [
    ...(aside.length === 0 ? [] : [`left aside, since they mean nothing here: ${some(aside)}`]),
    ...told.map(({ path, ours, note }) => `${path} is read as ${ours}: ${note}`),
  ];
  if (parts.length === 0) return [];
  const message =
    `keys of another program: ${parts.join("; ")} (\`rollcall config convert ${file}\` says why, and writes the ` +
    "file with Rollcall's keys)";
  return [{ where: file, message }];
}

function some(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(", ");
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
