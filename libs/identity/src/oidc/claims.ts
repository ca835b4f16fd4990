/** The claims in a token, keyed by name. */
export type Claims = Readonly<Record<string, unknown>>;

/** Get a claim by its name or, if there is none, by treating the name as a path. */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let found: unknown = claims;
  for (const part of path.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, part)) return undefined;
    found = (found as Claims)[part];
  }
  return found;
}

/** The strings in a claim that is a string or a list of strings. */
export function textsIn(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((it) => typeof it === "string");
}
