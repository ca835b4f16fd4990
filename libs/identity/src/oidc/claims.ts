/** What an issuer says in a token. */
export type Claims = Readonly<Record<string, unknown>>;

/** A claim by its name or, when there is none of that name, by the path that the name is. */
export function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let found: unknown = claims;
  for (const part of path.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, part)) return undefined;
    found = (found as Claims)[part];
  }
  return found;
}

/** The texts of a claim that is a text, or a list of texts. */
export function textsIn(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((it) => typeof it === "string");
}
