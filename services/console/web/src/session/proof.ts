import type { SignInResponse } from "@rollcall/api/rollcall/console/v1/console_pb";

/** The header that carries the page's half of a session. The other half is a cookie that no script can read. */
export const PROOF_HEADER = "x-rollcall-console";

const KEY = "rollcall.proof";

/** The proof of the session for which the page was loaded: what another tab keeps later is another reader's. */
let own = localStorage.getItem(KEY);

/** The proof of the page's session; null when it has none. */
export function readProof(): string | null {
  return own;
}

/** Keep the proof for all tabs of the browser. */
export function keepProof(proof: string): void {
  localStorage.setItem(KEY, proof);
}

/** Remove it: the other tabs notice. That of another session stays. */
export function dropProof(): void {
  if (localStorage.getItem(KEY) === own) localStorage.removeItem(KEY);
  own = null;
}

/** Send no proof any more, as when the browser has another session. */
export function forgetProof(): void {
  own = null;
}

/** Learn that another tab signed in or out. */
export function onProofChange(listener: () => void): () => void {
  const heard = (event: StorageEvent) => {
    if ((event.key === KEY || event.key === null) && localStorage.getItem(KEY) !== own) listener();
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}

/** Keep what sign-in answered, and load the page again as who it is now: nothing of an earlier reader stays. */
export function enterWith({ proof }: SignInResponse): void {
  keepProof(proof);
  const { pathname, search } = window.location;
  window.location.replace(pathname.startsWith("/sign-in") ? "/" : pathname + search);
}
