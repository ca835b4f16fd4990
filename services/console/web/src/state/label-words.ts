import { isLabelKey, isLabelValue } from "@rollcall/domain";

/** A label change as it is typed: "zone=a spot-" sets one label and removes another. */
export type LabelWords =
  | { readonly ok: true; readonly set: Readonly<Record<string, string>>; readonly remove: readonly string[] }
  | { readonly ok: false; readonly message: string };

/** Split a string at spaces and commas. */
export function labelWords(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

/** Parse words such as `key=value` and `key-`. */
export function parseLabelWords(text: string): LabelWords {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (const word of labelWords(text)) {
    const at = word.indexOf("=");
    const key = at < 0 ? word.replace(/-$/, "") : word.slice(0, at);
    if (!isLabelKey(key)) return { ok: false, message: `"${key}" is not a label key` };
    if (at < 0 && !word.endsWith("-"))
      return { ok: false, message: `write ${key}=value to set it, ${key}- to remove it` };
    const value = word.slice(at + 1);
    if (at >= 0 && !isLabelValue(value)) return { ok: false, message: `"${value}" is not a label value` };
    if (at < 0) remove.push(key);
    else set[key] = value;
  }
  const named = Object.keys(set).length + remove.length;
  return named === 0 ? { ok: false, message: "enter a label" } : { ok: true, set, remove };
}
