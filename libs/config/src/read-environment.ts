import type { Problem } from "./assignment.ts";
import { type Assignment, type SourceResult, unknownKey } from "./assignment.ts";
import { type FoundKey, KeyIndex } from "./key-index.ts";
import { type ConfigKeys, type DeclaredKey, declaredKeys, environmentName } from "./keys.ts";

/** Variables by name, as process.env. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Read the assignments of the environment: ROLLCALL_ and the path, the same with an alias, or a variable that the key
 * names. Empty variables set nothing. Unknown ROLLCALL_ variables are reported as warnings: Kubernetes makes such ones
 * by itself.
 */
export function readEnvironment(
  environment: Environment,
  keys: readonly DeclaredKey[],
): SourceResult & { readonly warnings: readonly Problem[] } {
  const known = new Set<string>();
  const assignments: Assignment[] = [];
  for (const key of keys) {
    // The plainest name last, so that it wins over the others.
    for (const [name, found] of variablesOf(key).reverse()) {
      known.add(name);
      const value = environment[name];
      if (value === undefined || value === "") continue;
      assignments.push({ found, written: value, where: `environment ${name}` });
    }
  }
  return { assignments, problems: [], warnings: strangers(environment, known, keys) };
}

/** The variables that set keys of a table, each with its key. */
export function environmentVariables<T>(keys: ConfigKeys<T>): ReadonlyMap<string, DeclaredKey> {
  return new Map(declaredKeys(keys).flatMap((key) => variablesOf(key).map(([name]) => [name, key] as const)));
}

function variablesOf(key: DeclaredKey): [string, FoundKey][] {
  const own: FoundKey = { key, alias: undefined };
  const aliases = (key.aliases ?? []).map((alias): [string, FoundKey] => [environmentName(alias), { key, alias }]);
  const further = (key.env ?? []).map((name): [string, FoundKey] => [name, own]);
  return [[environmentName(key.path), own], ...further, ...aliases];
}

function strangers(environment: Environment, known: ReadonlySet<string>, keys: readonly DeclaredKey[]): Problem[] {
  const names = Object.keys(environment).filter((it) => it.startsWith("ROLLCALL_") && !known.has(it));
  if (names.length === 0) return [];
  const index = new KeyIndex(keys);
  return names.map((name) => {
    const path = name.slice("ROLLCALL_".length).replaceAll("_", ".");
    return unknownKey(`environment ${name}`, path, index.nearest(path));
  });
}
