/** Which key was pressed before, and when. */
export interface KeyState {
  readonly prefix: { readonly atMs: number } | null;
}

/** What a key means. */
export interface KeyStep {
  readonly state: KeyState;
  readonly means: { readonly kind: "help" } | { readonly kind: "go"; readonly key: string } | null;
}

/** What has the focus, as far as keys ask. */
interface Focused {
  closest(selectors: string): unknown;
}

/** Whether a key activates what has the focus, a link or a button: then it is no shortcut. */
export function activates(key: string, target: Focused | null): boolean {
  return (key === "Enter" || key === " ") && target?.closest("a, button, [role=button], input, summary") != null;
}

/** How long "g" waits for the key after it. */
export const PREFIX_MS = 1000;

/** Read a key: "?" asks for help, "g" and another key in time go to a page. */
export function nextKey({ prefix }: KeyState, key: string, nowMs: number): KeyStep {
  if (prefix !== null && nowMs - prefix.atMs < PREFIX_MS)
    return { state: { prefix: null }, means: { kind: "go", key } };
  if (key === "g") return { state: { prefix: { atMs: nowMs } }, means: null };
  return { state: { prefix: null }, means: key === "?" ? { kind: "help" } : null };
}
