import { refuse } from "@rollcall/runtime";

/** Check that the record can keep texts, given by field name. Throws INVALID_REQUEST with all that it cannot. */
export function checkTexts(texts: Readonly<Record<string, string>>): void {
  const description = "a text may not contain the character U+0000";
  const violations = Object.entries(texts)
    .filter(([, text]) => text.includes("\0"))
    .map(([field]) => ({ field, description }));
  if (violations.length === 0) return;
  const message = violations.map(({ field }) => `${field}: ${description}`).join("; ");
  throw refuse("INVALID_REQUEST", message, { violations });
}
