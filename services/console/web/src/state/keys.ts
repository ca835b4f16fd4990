/** The previously pressed key, and when it was pressed. */
export interface KeyState {
  readonly prefix: { readonly atMs: number } | null;
}

/** What a key means. */
export interface KeyStep {
  readonly state: KeyState;
  readonly means: { readonly kind: "help" } | { readonly kind: "go"; readonly key: string } | null;
}

/** The part of the focused element that shortcuts use. */
interface Focused {
  closest(selectors: string): unknown;
}

/** Whether a key activates the focused link or button, and is therefore no shortcut. */
export function activates(key: string, target: Focused | null): boolean {
  return (key === "Enter" || key === " ") && target?.closest("a, button, [role=button], input, summary") != null;
}

/** How long "g" waits for the next key. */
export const PREFIX_MS = 1000;

/** Interpret a key: "?" opens help, and "g" with another key in time opens a page. */
export function nextKey({ prefix }: KeyState, key: string, nowMs: number): KeyStep {
  if (prefix !== null && nowMs - prefix.atMs < PREFIX_MS)
    return { state: { prefix: null }, means: { kind: "go", key } };
  if (key === "g") return { state: { prefix: { atMs: nowMs } }, means: null };
  return { state: { prefix: null }, means: key === "?" ? { kind: "help" } : null };
}
