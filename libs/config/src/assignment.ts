import type { ForeignValue } from "./foreign.ts";
import type { FoundKey } from "./key-index.ts";
import type { Written } from "./value-types.ts";

/** A value that a source sets for a key. */
export interface Assignment {
  readonly found: FoundKey;
  readonly written: Written;
  /** Where the source sets the value: "rollcall.yaml:12", "environment ROLLCALL_X", "flag --x". */
  readonly where: string;
}

export interface SourceResult {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly Problem[];
}

export interface FileResult extends SourceResult {
  /** Values of other programs' keys. */
  readonly foreign: readonly ForeignValue[];
}

/** A problem with the configuration. */
export interface Problem {
  /**
   * The source of the value: "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". Absent when the key was not
   * set.
   */
  readonly where?: string;
  /** The path of the key that has the problem, as declared. Absent for an unknown key. */
  readonly path?: string;
  readonly message: string;
}

export function formatProblem({ where, path, message }: Problem): string {
  return [where, path, message].filter((part) => part !== undefined).join(": ");
}

/** Format problems, one per line. */
export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join("\n");
}

/** The problem to report for a path that is not a key. */
export function unknownKey(where: string, path: string, nearest: string | undefined): Problem {
  const hint = nearest === undefined ? "; `rollcall config default` explains every key" : `, the nearest is ${nearest}`;
  return { where, message: `unknown key ${path}${hint}` };
}
