import { declaredKeys, environmentName } from "./keys.ts";
import type { Config } from "./load-config.ts";
import { type Written, writeValue } from "./value-types.ts";

/** One line of a listing. */
export interface Setting {
  readonly path: string;
  /**
   * The value in written form; "" when unset, "(secret)" for a secret that is set.
   */
  readonly value: string;
  readonly default: string;
  /** "default", "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". */
  readonly source: string;
  /** The alias that was used, if any. */
  readonly alias: string | undefined;
  readonly aliases: readonly string[];
  readonly environment: string;
  readonly flag: string | undefined;
  readonly doc: string;
}

/** List every key with its value and its source, in the order of declaration. */
export function listConfig<T>(config: Config<T>): readonly Setting[] {
  const values: Readonly<Record<string, unknown>> = { ...config.values };
  return declaredKeys(config.keys).map((key) => {
    const written = (value: unknown) => {
      const text = onOneLine(writeValue(key.schema, value));
      return key.secret && text !== "" ? "(secret)" : text;
    };
    const origin = config.origins[key.path];
    return {
      path: key.path,
      value: written(values[key.path]),
      default: written(key.default),
      source: origin?.source ?? "default",
      alias: origin?.alias,
      aliases: key.aliases ?? [],
      environment: environmentName(key.path),
      flag: key.flag,
      doc: key.doc,
    };
  });
}

function onOneLine(written: Written | undefined): string {
  if (written === undefined) return "";
  if (typeof written === "string") return written;
  if (isList(written)) return written.map(onOneLine).join(",");
  return Object.entries(written)
    .map(([key, value]) => `${key}=${onOneLine(value)}`)
    .join(",");
}

function isList(written: Written): written is readonly Written[] {
  return Array.isArray(written);
}
