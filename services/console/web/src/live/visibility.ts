import { HIDDEN_MS } from "../state/link.ts";
import { Observable } from "./observable.ts";

/**
 * Whether the page is visible. Over HTTP/1.1 a browser has six connections per origin for all its tabs, and every
 * stream uses one. A page that is hidden for a while therefore closes its streams, and resumes them later from
 * their tokens.
 */
export const looked = new Observable(true);

let timer: number | undefined;

/** Start following the page's visibility. Called once. */
export function followVisibility(): void {
  document.addEventListener("visibilitychange", () => {
    window.clearTimeout(timer);
    if (document.visibilityState === "visible") looked.set(true);
    else timer = window.setTimeout(() => looked.set(false), HIDDEN_MS);
  });
}

/** Wait until the page is visible; rejects when the signal aborts. */
export function untilScanned(signal: AbortSignal): Promise<void> {
  if (looked.value) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const stop = looked.subscribe(() => {
      if (!looked.value) return;
      stop();
      resolve();
    });
    signal.addEventListener("abort", () => {
      stop();
      reject(signal.reason);
    });
  });
}
