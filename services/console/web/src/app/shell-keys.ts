import { useEffect } from "react";
import { Observable } from "../live/observable.ts";
import { takeBack } from "../pages/approvals/decisions.ts";
import { session } from "../session/session.ts";
import { activates, type KeyState, nextKey, PREFIX_MS } from "../state/keys.ts";
import { goTo } from "./address.ts";
import { NAV_PAGES } from "./pages.ts";

/** The overlay on the page: the palette, the list of shortcuts, or nothing. */
export const palette = new Observable<"commands" | "keys" | null>(null);

/** Open the palette or the list of shortcuts. */
export function openPalette(mode: "commands" | "keys"): void {
  palette.set(mode);
}

/** Shortcuts that a page adds, with their descriptions. Those of the newest page come first. */
interface PageKeys {
  readonly keys: readonly { readonly key: string; readonly does: string }[];
}

/** The shortcuts of the current page. */
export const pageKeys = new Observable<PageKeys>({ keys: [] });

/** Whether a key press goes to a text field or a dialog. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  const isField = target?.matches("input:not([type=checkbox]), textarea, select, [contenteditable]") ?? false;
  return isField || target?.closest("[role=dialog], [role=menu]") != null;
}

/** The shortcuts that work everywhere. Used once. */
export function useShellKeys(): void {
  useEffect(() => {
    let state: KeyState = { prefix: null };
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        return openPalette("commands");
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event)) return;
      const step = nextKey(state, event.key, event.timeStamp);
      state = step.state;
      // Handle undo on every page, because every page shows the decisions.
      if (event.key === "z" && step.means === null && palette.value === null) takeBack();
      if (step.means === null) return;
      if (step.means.kind === "help") openPalette("keys");
      if (step.means.kind === "go") {
        const { key } = step.means;
        const page = NAV_PAGES.find((one) => one.key === key);
        const { value } = session;
        const mayGo = page?.needs === undefined || (value.state === "signed-in" && value.rights[page.needs]);
        if (page !== undefined && mayGo) goTo(page.path);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

/**
 * When "g" was last pressed. Stored outside the component, because a render would reset it, and the next key would
 * count as a shortcut of the page.
 */
let afterG = -Infinity;

/** Add shortcuts while a page is shown. The keys are values of KeyboardEvent.key. */
export function usePageKeys(keys: Readonly<Record<string, { readonly does: string; readonly run: () => void }>>): void {
  useEffect(() => {
    pageKeys.set({ keys: Object.entries(keys).map(([key, { does }]) => ({ key, does })) });
    const press = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event) || palette.value !== null) return;
      // The key after "g" selects a page.
      const isSecond = event.timeStamp - afterG < PREFIX_MS;
      if (event.key === "g") afterG = event.timeStamp;
      const known = keys[event.key];
      if (known === undefined || isSecond) return;
      if (activates(event.key, event.target as HTMLElement | null)) return;
      event.preventDefault();
      known.run();
    };
    window.addEventListener("keydown", press);
    return () => {
      window.removeEventListener("keydown", press);
      pageKeys.set({ keys: [] });
    };
  }, [keys]);
}
