import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Shell } from "../shell.ts";
import { type OutputFormat, toPlain, writePlain } from "./format.ts";
import { printable } from "./text.ts";

/** The formats of a verb that changes one object. */
export const CHANGE_FORMATS = ["table", "name", "json", "yaml"] as const satisfies readonly OutputFormat[];
export type ChangeFormat = (typeof CHANGE_FORMATS)[number];

/** Format the result for people: `Ok: web-1 cordoned`. Scripts can rely on the `Ok` at the start. */
export function okLine(object: string, result: string): string {
  return `Ok: ${printable(object)} ${result}\n`;
}

/** An object and what happened to it, for example `web-1` and `cordoned`. */
export interface Change {
  readonly object: string;
  readonly result: string;
}

/** Write a change: one line for people, the object's name, or the whole response. */
export async function writeChange<Desc extends DescMessage>(
  shell: Pick<Shell, "out">,
  format: ChangeFormat,
  [schema, message]: readonly [Desc, MessageShape<Desc>],
  { object, result }: Change,
): Promise<void> {
  if (format === "json" || format === "yaml") await writePlain(shell, format, toPlain(schema, message));
  else writeWords(shell, format, { object, result });
}

/** Write one line for people, or only the object's name. */
export function writeWords({ out }: Pick<Shell, "out">, format: "table" | "name", { object, result }: Change): void {
  out.write(format === "table" ? okLine(object, result) : `${printable(object)}\n`);
}
