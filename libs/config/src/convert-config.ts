import type { Assignment, Problem } from "./assignment.ts";
import type { ForeignIndex } from "./foreign.ts";
import { KeyIndex } from "./key-index.ts";
import { type ConfigKeys, declaredKeys } from "./keys.ts";
import { readFile, repeats } from "./load-config.ts";
import { commentLines, printSections } from "./print-sections.ts";
import type { ConfigFile } from "./read-yaml.ts";
import { type LeftAside, resolveForeign } from "./resolve-foreign.ts";
import { isPublicProblem, type Written, writeValue } from "./value-types.ts";

/** One of Rollcall's keys and the value that a file sets for it. */
export interface ConvertedSetting {
  readonly path: string;
  readonly written: Written;
  readonly where: string;
  /** The name in the file; undefined if the file uses the key's own path. */
  readonly from: string | undefined;
  /** A remark for the reader; may be empty. */
  readonly note: string;
}

/** The settings of a file under Rollcall's keys. */
export interface ConvertedConfig {
  /** The settings, in the order in which their keys are declared. */
  readonly settings: readonly ConvertedSetting[];
  readonly leftAside: readonly LeftAside[];
}

export type ConvertResult =
  | { readonly ok: true; readonly config: ConvertedConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Convert a file to the current keys, from their older names and from other programs' keys. Other sources of
 * configuration are not read.
 */
export function convertConfig(options: {
  readonly keys: ConfigKeys<unknown>;
  readonly foreign: ForeignIndex;
  readonly file: ConfigFile;
}): ConvertResult {
  const keys = declaredKeys(options.keys);
  const own = new KeyIndex(keys);
  const { foreign } = options;
  const file = readFile(options.file, own, foreign);
  const given = new Map(file.assignments.map((it) => [it.found.key.path, it]));
  const others = resolveForeign(file.foreign, { foreign, own }, given);
  const problems = [...file.problems, ...repeats(file.assignments), ...others.problems];
  const notes = new Map(others.readAs.map(({ ours, note }) => [ours, note]));
  const all = new Map([...given, ...others.assignments.map((it) => [it.found.key.path, it] as const)]);
  const settings = keys.flatMap(({ path }) => {
    const assignment = all.get(path);
    return assignment === undefined ? [] : convert(assignment, notes.get(path) ?? "", problems);
  });
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, config: { settings, leftAside: others.leftAside } };
}

/**
 * Print a converted file as YAML: the settings with their origins, and the unconverted parts as comments. Loading it
 * has the same effect as loading the original.
 */
export function printConverted({ settings, leftAside }: ConvertedConfig, from: string): string {
  const printed = settings.map(({ path, written, where, from: name, note }) => ({
    path,
    notes: [`${name === undefined ? "" : `${name}, `}${where}${note === "" ? "" : `: ${note}`}`],
    written,
  }));
  const aside = leftAside.flatMap(({ path, where, why }) =>
    commentLines(`${path}, ${where}${why === "" ? "" : `: ${why}`}`),
  );
  const lines = [
    ...commentLines(`Converted from ${from}. \`rollcall config default\` explains every key.`),
    "",
    ...printSections(printed),
    ...(settings.length === 0 ? ["# It contains no Rollcall settings."] : []),
    ...(aside.length === 0 ? [] : ["", "# Not converted, because Rollcall does not use it:", ...aside]),
  ];
  return `${lines.join("\n")}\n`;
}

function convert(
  { found: { key, alias }, written, where }: Assignment,
  note: string,
  problems: Problem[],
): readonly ConvertedSetting[] {
  const { path, schema, secret } = key;
  const result = schema.safeParse(written);
  if (!result.success) {
    for (const issue of result.error.issues) {
      const isHidden = secret === true && !isPublicProblem(issue);
      problems.push({ where, path, message: isHidden ? "the value is invalid" : issue.message });
    }
    return [];
  }
  // Keep values that are written under Rollcall's own keys unchanged, including credentials in addresses.
  const plain = alias === undefined ? written : writeValue(schema, result.data);
  return plain === undefined ? [] : [{ path, written: plain, where, from: alias, note }];
}
