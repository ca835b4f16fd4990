import { jsonpath } from "json-p3";
import { UsageError } from "../failure.ts";
import type { Plain } from "./format.ts";

/** The prefix of --output that selects values of the response. */
export const JSONPATH = "jsonpath=";

/**
 * Fill in a template like kubectl's: each `{.nodes[*].id}` becomes the values at that path (RFC 9535), separated by
 * blanks. `{"\n"}` is a quoted string. Ends with a line break. Throws UsageError for a wrong path.
 */
export function fillTemplate(template: string, value: Plain): string {
  const text = template.replaceAll(/\{([^{}]*)\}/g, (_, expression: string) => evaluate(expression.trim(), value));
  return text.endsWith("\n") ? text : `${text}\n`;
}

function evaluate(expression: string, value: Plain): string {
  if (expression.startsWith('"')) return quoted(expression);
  const path = expression.replace(/^\$?/, "$");
  try {
    return jsonpath
      .query(path, value as Parameters<typeof jsonpath.query>[1])
      .values()
      .map((found) => (typeof found === "string" ? found : JSON.stringify(found)))
      .join(" ");
  } catch (error) {
    throw wrongPath(expression, error);
  }
}

function quoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch (error) {
    throw wrongPath(text, error);
  }
}

function wrongPath(expression: string, cause: unknown): UsageError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new UsageError(`{${expression}} is not a JSON path, such as {.nodes[*].id}: ${why}`, { cause });
}
