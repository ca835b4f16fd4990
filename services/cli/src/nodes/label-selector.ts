import { parseSelector } from "@rollcall/domain";
import { UsageError } from "../failure.ts";

/** Check a label selector before anybody is asked; its text. Throws UsageError that shows what is wrong, and where. */
export function checkedSelector(option: string, text: string): string {
  const parsed = parseSelector(text);
  if (parsed.ok) return text;
  throw new UsageError(`cannot use '${text}' as ${option} value: ${parsed.message}`);
}
