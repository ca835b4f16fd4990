import { useEffect } from "react";
import { Observable } from "../live/observable.ts";
import { takeBack } from "../pages/approvals/decisions.ts";
import { session } from "../session/session.ts";
import { activates, type KeyState, nextKey, PREFIX_MS } from "../state/keys.ts";
import { goTo } from "./address.ts";
import { NAV_PAGES } from "./pages.ts";

/** What is open over the page: the palette, the list of shortcuts, or nothing. */
export const palette = new Observable<"commands" | "keys" | null>(null);

/** Open the palette or the list of shortcuts. */
export function openPalette(mode: "commands" | "keys"): void {
  palette.set(mode);
}

/** Shortcuts that a page adds, with what they do; the newest page's come first. */
interface PageKeys {
  readonly keys: readonly { readonly key: string; readonly does: string }[];
}

/** What the present page's own shortcuts are. */
export const pageKeys = new Observable<PageKeys>({ keys: [] });

/** Whether a key goes to something that takes text, or to a dialog. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  const isField = target?.matches("input:not([type=checkbox]), textarea, select, [contenteditable]") ?? false;
  return isField || target?.closest("[role=dialog], [role=menu]") != null;
}

/** The shortcuts that work everywhere; once in the page. */
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
      // Decisions are shown on every page, and so can be taken back on every page.
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

/** When "g" was pressed last: kept over renders, or the key after it would be taken for one of the page's own. */
let afterG = -Infinity;

/** Shortcuts of a page, while it is shown. Keys are as KeyboardEvent.key has them. */
export function usePageKeys(keys: Readonly<Record<string, { readonly does: string; readonly run: () => void }>>): void {
  useEffect(() => {
    pageKeys.set({ keys: Object.entries(keys).map(([key, { does }]) => ({ key, does })) });
    const press = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event) || palette.value !== null) return;
      // The key after "g" goes to a page.
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
