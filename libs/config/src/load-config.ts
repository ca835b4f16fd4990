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

/** Where the value of a key comes from. */
export interface Origin {
  /** "default", "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". */
  readonly source: string;
  /** The alias that was written instead of the path, if one was. */
  readonly alias: string | undefined;
}

/** The configuration of a process, frozen. */
export interface Config<T> {
  readonly keys: ConfigKeys<T>;
  readonly values: Readonly<T>;
  readonly origins: Readonly<Record<string, Origin>>;
  /**
   * What is odd but harmless: unknown ROLLCALL_ variables, and keys of other programs in the file, all of them in one.
   */
  readonly warnings: readonly Problem[];
}

export interface LoadOptions<T> {
  readonly keys: ConfigKeys<T>;
  /** Keys of other services, which the same file may hold: accepted, and not looked at. */
  readonly alsoKnown?: ConfigKeys<unknown>;
  /** Keys of other programs that a file may hold. */
  readonly foreign?: ForeignIndex;
  readonly file?: ConfigFile;
  /** As process.env. */
  readonly env?: Environment;
  readonly flags?: Flags;
  /**
   * What is wrong between values that are each right, by the path to blame. It is asked only when each value is right.
   */
  check?(values: Readonly<T>): readonly RelationProblem<T>[];
}

/** What is wrong with a value beside others. */
export interface RelationProblem<T> {
  readonly path: keyof T & string;
  readonly message: string;
  /**
   * In place of the message, a warning alone, where the value comes from a variable that other programs share, such as
   * HTTPS_PROXY. Default: it is as wrong there.
   */
  readonly ofOthers?: string;
}

export type LoadResult<T> =
  | { readonly ok: true; readonly config: Config<T> }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Read the configuration: flags win over the environment, which wins over the file, which wins over the defaults. All
 * problems are reported at once.
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
    values[key.path] = assignment === undefined ? key.default : read(key, assignment, problems);
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

/** Read a file in the language that its name says. */
export function readFile(file: ConfigFile, index: KeyIndex, foreign: ForeignIndex): FileResult {
  return isPython(file) ? readPython(file, index, foreign) : readYaml(file, index, foreign);
}

function read(key: DeclaredKey, { written, where }: Assignment, problems: Problem[]): unknown {
  const result = key.schema.safeParse(written);
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const place = issue.path.length === 0 ? "" : `item ${issue.path.join(".")}: `;
    const isHidden = key.secret === true && !isPublicProblem(issue);
    const message = isHidden ? "the value is not acceptable" : `${place}${issue.message}`;
    problems.push({ where, path: key.path, message });
  }
  return key.default;
}

/**
 * One file that sets a key to two values, perhaps one by an alias, says two things; which one is meant is not ours to
 * guess.
 */
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
