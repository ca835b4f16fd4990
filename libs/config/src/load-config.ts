import { resolve } from "node:path";
import type { Assignment, FileResult, Problem } from "./assignment.ts";
import { type ForeignIndex, NO_FOREIGN_KEYS } from "./foreign.ts";
import { KeyIndex } from "./key-index.ts";
import { type ConfigKeys, type DeclaredKey, declaredKeys } from "./keys.ts";
import { type Environment, readEnvironment } from "./read-environment.ts";
import { type Flags, readFlags } from "./read-flags.ts";
import { isPython, readPython } from "./read-python.ts";
import { type ConfigFile, readYaml } from "./read-yaml.ts";
import { foreignWarning, resolveForeign } from "./resolve-foreign.ts";
import { isPublicProblem } from "./value-types.ts";

/** Where a key's value comes from. */
export interface Origin {
  /** "default", "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". */
  readonly source: string;
  /** The alias that was used instead of the path, if any. */
  readonly alias: string | undefined;
}

/** The configuration of a process, frozen. */
export interface Config<T> {
  readonly keys: ConfigKeys<T>;
  readonly values: Readonly<T>;
  readonly origins: Readonly<Record<string, Origin>>;
  /**
   * Harmless irregularities: one for each unknown ROLLCALL_ variable, and one for all keys of other programs in the
   * file.
   */
  readonly warnings: readonly Problem[];
}

export interface LoadOptions<T> {
  readonly keys: ConfigKeys<T>;
  /** Keys of other services that share the file: accepted but not validated. */
  readonly alsoKnown?: ConfigKeys<unknown>;
  /** Other programs' keys that a file can contain. */
  readonly foreign?: ForeignIndex;
  readonly file?: ConfigFile;
  /** As process.env. */
  readonly env?: Environment;
  readonly flags?: Flags;
  /** The absolute directory against which relative paths are resolved. Default: paths stay relative. */
  readonly cwd?: string;
  /**
   * Find conflicts between values, each reported with the path of one of the values. Called only when each value is
   * valid.
   */
  check?(values: Readonly<T>): readonly RelationProblem<T>[];
}

/** A conflict between a value and other values. */
export interface RelationProblem<T> {
  readonly path: keyof T & string;
  readonly message: string;
  /**
   * A warning to report instead of failing with the message. Set if the value may come from a variable shared with
   * other programs, such as HTTPS_PROXY. Default: fail.
   */
  readonly ofOthers?: string;
}

export type LoadResult<T> =
  | { readonly ok: true; readonly config: Config<T> }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Read the configuration: flags override the environment, which overrides the file, which overrides the defaults. All
 * problems are reported together.
 */
export function loadConfig<T>(options: LoadOptions<T>): LoadResult<T> {
  const own = declaredKeys(options.keys);
  const ownPaths = new Set(own.map((key) => key.path));
  const neighbours = declaredKeys(options.alsoKnown ?? {}).filter((key) => !ownPaths.has(key.path));
  const all = [...own, ...neighbours];
  const index = new KeyIndex(all);
  const foreign = options.foreign ?? NO_FOREIGN_KEYS;
  const file = options.file === undefined ? NOTHING : readFile(options.file, index, foreign);
  const env = readEnvironment(options.env ?? {}, all);
  const flags = readFlags(options.flags ?? {}, all, index);
  const problems = [...file.problems, ...repeats(file.assignments), ...env.problems, ...flags.problems];

  const given = new Map<string, Assignment>();
  for (const it of [...file.assignments, ...env.assignments, ...flags.assignments]) {
    given.set(it.found.key.path, it);
  }
  const others = resolveForeign(file.foreign, { foreign, own: index }, given);
  problems.push(...others.problems);
  for (const it of others.assignments) given.set(it.found.key.path, it);
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const key of own) {
    const assignment = given.get(key.path);
    origins[key.path] = { source: assignment?.where ?? "default", alias: assignment?.found.alias };
    values[key.path] = assignment === undefined ? key.default : read(key, assignment, options.cwd, problems);
  }
  const typed = freeze(values) as Readonly<T>;
  const related = problems.length === 0 ? relations(options, typed, origins) : { problems: [], warnings: [] };
  problems.push(...related.problems);
  if (problems.length > 0) return { ok: false, problems };
  const config = {
    keys: options.keys,
    values: typed,
    origins: freeze(origins),
    warnings: [...env.warnings, ...related.warnings, ...foreignWarning(options.file?.name ?? "", others)],
  };
  return { ok: true, config: Object.freeze(config) };
}

const NOTHING: FileResult = { assignments: [], foreign: [], problems: [] };

/** Read a file in the format that its name implies. */
export function readFile(file: ConfigFile, index: KeyIndex, foreign: ForeignIndex): FileResult {
  return isPython(file) ? readPython(file, index, foreign) : readYaml(file, index, foreign);
}

function read(key: DeclaredKey, { written, where }: Assignment, cwd: string | undefined, problems: Problem[]): unknown {
  const result = key.schema.safeParse(written);
  if (result.success) {
    const { data } = result;
    return key.isPath === true && cwd !== undefined && typeof data === "string" ? resolve(cwd, data) : data;
  }
  for (const issue of result.error.issues) {
    const place = issue.path.length === 0 ? "" : `item ${issue.path.join(".")}: `;
    const isHidden = key.secret === true && !isPublicProblem(issue);
    const message = isHidden ? "the value is invalid" : `${place}${issue.message}`;
    problems.push({ where, path: key.path, message });
  }
  return key.default;
}

/** Find keys that a file sets to two different values, for example once under an alias. Such a file is ambiguous. */
export function repeats(assignments: readonly Assignment[]): Problem[] {
  const first = new Map<string, Assignment>();
  const problems: Problem[] = [];
  for (const assignment of assignments) {
    const { key, alias } = assignment.found;
    const earlier = first.get(key.path);
    if (earlier === undefined) {
      first.set(key.path, assignment);
      continue;
    }
    if (JSON.stringify(earlier.written) === JSON.stringify(assignment.written)) continue;
    const as = alias === undefined ? "" : ` (as its alias ${alias})`;
    const message = `set twice, here${as} and at ${earlier.where}`;
    problems.push({ where: assignment.where, path: key.path, message });
  }
  return problems;
}

function relations<T>(
  options: LoadOptions<T>,
  values: Readonly<T>,
  origins: Readonly<Record<string, Origin>>,
): { readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const { path, message, ofOthers } of options.check?.(values) ?? []) {
    const source = origins[path]?.source ?? "default";
    const where = source === "default" ? {} : { where: source };
    if (ofOthers !== undefined && SHARED_VARIABLE.test(source)) warnings.push({ ...where, path, message: ofOthers });
    else problems.push({ ...where, path, message });
  }
  return { problems, warnings };
}

const SHARED_VARIABLE = /^environment (?!ROLLCALL_)/;

function freeze<V>(value: V): V {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}
