import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { OUTPUT_WORDS } from "../choices.ts";
import { pickWord } from "../failure.ts";
import type { GlobalOptions } from "../invocation.ts";
import type { Shell } from "../shell.ts";

/** The format of a result. */
export type OutputFormat = (typeof OUTPUT_WORDS)[number];

/** The formats of a verb that prints one response. */
export const ANSWER_FORMATS = ["table", "json", "yaml"] as const satisfies readonly OutputFormat[];

/** A value that JSON and YAML can write. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** The format of this call, among those that the verb supports; the first is the default. Throws UsageError. */
export function outputFormat<F extends OutputFormat>(options: GlobalOptions, known: readonly [F, ...F[]]): F {
  return options.output === undefined ? known[0] : pickWord("output", options.output, known);
}

/**
 * A message in proto JSON: lowerCamelCase names, enum values by name, 64-bit numbers as strings, times in RFC 3339.
 * Empty fields are written too, so that scripts can rely on the shape; absent messages are left out.
 */
export function toPlain<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Plain {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

/** A value as JSON or YAML, with a line break at the end. The YAML library is loaded only when it is needed. */
export async function formatPlain(format: "json" | "yaml", value: Plain): Promise<string> {
  if (format === "json") return `${JSON.stringify(value, null, 2)}\n`;
  // Use the default export, because in the bundle, a CommonJS package that is imported dynamically has no other.
  const { default: yaml } = await import("yaml");
  return yaml.stringify(value, { lineWidth: 0 });
}

/** Write a value as JSON or YAML. */
export async function writePlain({ out }: Pick<Shell, "out">, format: "json" | "yaml", value: Plain): Promise<void> {
  out.write(await formatPlain(format, value));
}

/** Write a response: the whole message as JSON or YAML, otherwise the text for people. */
export async function writeAnswer<Desc extends DescMessage>(
  shell: Pick<Shell, "out">,
  format: (typeof ANSWER_FORMATS)[number],
  [schema, message]: readonly [Desc, MessageShape<Desc>],
  text: string,
): Promise<void> {
  if (format === "table") shell.out.write(text);
  else await writePlain(shell, format, toPlain(schema, message));
}
