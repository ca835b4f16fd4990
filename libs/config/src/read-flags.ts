import type { Problem } from "./assignment.ts";
import { type Assignment, type SourceResult, unknownKey } from "./assignment.ts";
import type { FoundKey, KeyIndex } from "./key-index.ts";
import type { DeclaredKey } from "./keys.ts";
import type { Written } from "./value-types.ts";

/**
 * Parsed flags, keyed by flag name ("manual-approval" or manualApproval) or by path. Undefined sets
 * nothing.
 */
export type Flags = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Read settings from command-line flags. */
export function readFlags(flags: Flags, keys: readonly DeclaredKey[], index: KeyIndex): SourceResult {
  const byFlag = new Map<string, FoundKey>();
  for (const key of keys) {
    if (key.flag !== undefined) byFlag.set(plain(key.flag), { key, alias: undefined });
  }
  const assignments: Assignment[] = [];
  const problems: Problem[] = [];
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined) continue;
    const flagged = byFlag.get(plain(name));
    const found = flagged ?? index.find(name);
    // Only --set can name a key by its path.
    const isPath = flagged === undefined && (found !== undefined || name.includes("."));
    const where = `flag --${isPath ? "set" : (flagged?.key.flag ?? name)}`;
    if (found === undefined) problems.push(unknownKey(where, name, index.nearest(name)));
    else assignments.push({ found, written: toWritten(value), where });
  }
  return { assignments, problems };
}

function toWritten(value: string | number | boolean | readonly string[]): Written {
  return typeof value === "object" ? value : String(value);
}

function plain(flag: string): string {
  return flag.toLowerCase().replaceAll("-", "");
}
