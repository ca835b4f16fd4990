import type { Problem } from "./assignment.ts";
import { type Assignment, type SourceResult, unknownKey } from "./assignment.ts";
import { type FoundKey, KeyIndex } from "./key-index.ts";
import { type ConfigKeys, type DeclaredKey, declaredKeys, environmentName } from "./keys.ts";

/** Environment variables, keyed by name as in process.env. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Read settings from the environment: from ROLLCALL_ followed by a path or alias, or from a variable that the key
 * names. Empty variables set nothing. Unknown ROLLCALL_ variables only cause warnings, because Kubernetes injects
 * variables with this prefix automatically.
 */
export function readEnvironment(
  environment: Environment,
  keys: readonly DeclaredKey[],
): SourceResult & { readonly warnings: readonly Problem[] } {
  const known = new Set<string>();
  const assignments: Assignment[] = [];
  for (const key of keys) {
    // Read the primary name last, so that it overrides the others.
    for (const [name, found] of variablesOf(key).reverse()) {
      known.add(name);
      const value = environment[name];
      if (value === undefined || value === "") continue;
      assignments.push({ found, written: value, where: `environment ${name}` });
    }
  }
  return { assignments, problems: [], warnings: anonymousClients(environment, known, keys) };
}

/** The environment variables that set the keys of a table, each with its key. */
export function environmentVariables<T>(keys: ConfigKeys<T>): ReadonlyMap<string, DeclaredKey> {
  return new Map(declaredKeys(keys).flatMap((key) => variablesOf(key).map(([name]) => [name, key] as const)));
}

function variablesOf(key: DeclaredKey): [string, FoundKey][] {
  const own: FoundKey = { key, alias: undefined };
  const aliases = (key.aliases ?? []).map((alias): [string, FoundKey] => [environmentName(alias), { key, alias }]);
  const further = (key.env ?? []).map((name): [string, FoundKey] => [name, own]);
  return [[environmentName(key.path), own], ...further, ...aliases];
}

function anonymousClients(
  environment: Environment,
  known: ReadonlySet<string>,
  keys: readonly DeclaredKey[],
): Problem[] {
  const names = Object.keys(environment).filter((it) => it.startsWith("ROLLCALL_") && !known.has(it));
  if (names.length === 0) return [];
  const index = new KeyIndex(keys);
  return names.map((name) => {
    const path = name.slice("ROLLCALL_".length).replaceAll("_", ".");
    return unknownKey(`environment ${name}`, path, index.nearest(path));
  });
}
