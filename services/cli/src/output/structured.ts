import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";

/** A value that JSON and YAML can write. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/**
 * A message in proto JSON: lowerCamelCase names, enum values by name, 64-bit numbers as strings, times in RFC 3339.
 * Fields that are empty are written too, so that scripts can rely on the shape; messages that are absent are left out.
 */
export function toPlain<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Plain {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

/** A value as JSON or YAML, with a line break at the end. The YAML library is loaded only when it is needed. */
export async function formatStructured(format: "json" | "yaml", value: Plain): Promise<string> {
  if (format === "json") return `${JSON.stringify(value, null, 2)}\n`;
  const { stringify } = await import("yaml");
  return stringify(value, { lineWidth: 0 });
}
