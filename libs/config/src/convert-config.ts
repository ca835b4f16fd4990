import type { Assignment, Problem } from "./assignment.ts";
import type { ForeignIndex } from "./foreign.ts";
import { KeyIndex } from "./key-index.ts";
import { type ConfigKeys, declaredKeys } from "./keys.ts";
import { readFile, repeats } from "./load-config.ts";
import { commentLines, printSections } from "./print-sections.ts";
import type { ConfigFile } from "./read-yaml.ts";
import { type LeftAside, resolveForeign } from "./resolve-foreign.ts";
import { isPublicProblem, type Written, writeValue } from "./value-types.ts";

/** A key of ours with the value that a file gives to it. */
export interface ConvertedSetting {
  readonly path: string;
  readonly written: Written;
  readonly where: string;
  /** The name by which the file calls it; undefined when that is its own. */
  readonly from: string | undefined;
  /** What the reader should know of it; empty when there is nothing to say. */
  readonly note: string;
}

/** A file in our terms. */
export interface ConvertedConfig {
  /** In the order in which the keys are declared. */
  readonly settings: readonly ConvertedSetting[];
  readonly leftAside: readonly LeftAside[];
}

export type ConvertResult =
  | { readonly ok: true; readonly config: ConvertedConfig }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Say in our keys what a file says in ours, in older names of them, and in those of other programs. Nothing but the
 * file is looked at.
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
 * Print a converted file as YAML: what it sets, from where, and in comments what had no meaning. To load it sets the
 * same.
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
    ...(settings.length === 0 ? ["# Nothing of it is a setting of Rollcall."] : []),
    ...(aside.length === 0 ? [] : ["", "# Left aside, since it means nothing here:", ...aside]),
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
      problems.push({ where, path, message: isHidden ? "the value is not acceptable" : issue.message });
    }
    return [];
  }
  // What is written in our own terms stays as it is, credentials in addresses among it.
  const plain = alias === undefined ? written : writeValue(schema, result.data);
  return plain === undefined ? [] : [{ path, written: plain, where, from: alias, note }];
}
