import { type ConfigKeys, declaredKeys } from "./keys.ts";
import { printSections } from "./print-sections.ts";
import { writeValue } from "./value-types.ts";

/**
 * Print a file with every key at its default, explained. Keys that are not set by default are commented out.
 * To load it changes nothing.
 */
export function printDefaultYaml<T>(keys: ConfigKeys<T>): string {
  const printed = declaredKeys(keys).map(({ path, doc, aliases, schema, default: value }) => ({
    path,
    notes: [doc, ...(aliases === undefined ? [] : [`Also as: ${aliases.join(", ")}.`])],
    written: writeValue(schema, value),
  }));
  return `${printSections(printed).join("\n")}\n`;
}
