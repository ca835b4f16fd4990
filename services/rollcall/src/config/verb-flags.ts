import type { ConfigKeys, KeyDeclaration } from "@rollcall/config";

/** The flags of a verb whose options are configuration keys, for completion. */
export function verbFlags(keys: ConfigKeys<unknown>): readonly string[] {
  const own = Object.values<KeyDeclaration<unknown>>(keys).flatMap(({ flag, default: value }) => {
    if (flag === undefined) return [];
    return typeof value === "boolean" ? [`--${flag}`, `--no-${flag}`] : [`--${flag}`];
  });
  return [...own, "--config", "--set", "--help"];
}
