import type { ForeignValue } from "./foreign.ts";
import type { FoundKey } from "./key-index.ts";
import type { Problem } from "./problems.ts";
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

/** The problem of a path that is no key. */
export function unknownKey(where: string, path: string, nearest: string | undefined): Problem {
  const hint = nearest === undefined ? "" : `, the nearest is ${nearest}`;
  return { where, message: `unknown key ${path}${hint}` };
}
