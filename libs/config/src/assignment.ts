import type { ForeignValue } from "./foreign.ts";
import type { FoundKey } from "./key-index.ts";
import type { Written } from "./value-types.ts";

/** A value that some source gives to a key. */
export interface Assignment {
  readonly found: FoundKey;
  readonly written: Written;
  /** "rollcall.yaml:12", "environment ROLLCALL_X", "flag --x". */
  readonly where: string;
}

/** What was read from one source. */
export interface SourceResult {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly Problem[];
}

/** What was read from a file. */
export interface FileResult extends SourceResult {
  /** Values of keys of other programs. */
  readonly foreign: readonly ForeignValue[];
}

/** Something wrong with the configuration. */
export interface Problem {
  /**
   * Where it was set: "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". Absent for what was not set anywhere.
   */
  readonly where?: string;
  /** The key that is concerned, as declared. Absent for an unknown one. */
  readonly path?: string;
  readonly message: string;
}

/** A problem on one line. */
export function formatProblem({ where, path, message }: Problem): string {
  return [where, path, message].filter((part) => part !== undefined).join(": ");
}

/** All problems, one a line. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join("\n");
}

/** The problem of a path that is no key. */
export function unknownKey(where: string, path: string, nearest: string | undefined): Problem {
  const hint = nearest === undefined ? "; `rollcall config default` explains every key" : `, the nearest is ${nearest}`;
  return { where, message: `unknown key ${path}${hint}` };
}
