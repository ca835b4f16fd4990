import { HIDDEN_MS } from "../state/link.ts";
import { Observable } from "./observable.ts";

/**
 * Whether the page is looked at. A browser has six connections to an origin for all its tabs over HTTP/1.1, and every
 * stream takes one: a page that is hidden for a while gives its own back, and goes on from its tokens later.
 */
export const looked = new Observable(true);

let timer: number | undefined;

/** Follow the page's visibility; once, at the start. */
export function followVisibility(): void {
  document.addEventListener("visibilitychange", () => {
    window.clearTimeout(timer);
    if (document.visibilityState === "visible") looked.set(true);
    else timer = window.setTimeout(() => looked.set(false), HIDDEN_MS);
  });
}

/** Wait until the page is looked at; rejects when the signal aborts. */
export function untilLooked(signal: AbortSignal): Promise<void> {
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
