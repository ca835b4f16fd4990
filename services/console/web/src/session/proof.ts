import type { SignInResponse } from "@rollcall/api/rollcall/console/v1/console_pb";

/** The header with the page's half of a session. The other half is a cookie that scripts cannot read. */
export const PROOF_HEADER = "x-rollcall-console";

const KEY = "rollcall.proof";

/**
 * The proof of the session that the page was loaded with. A proof that another tab stores later belongs to
 * another session.
 */
let own = localStorage.getItem(KEY);

/** The proof of the page's session; null when there is no session. */
export function readProof(): string | null {
  return own;
}

/** Store the proof for all tabs of the browser. */
function keepProof(proof: string): void {
  localStorage.setItem(KEY, proof);
}

/** Remove the proof, which other tabs notice. Keeps a proof that belongs to another session. */
export function dropProof(): void {
  if (localStorage.getItem(KEY) === own) localStorage.removeItem(KEY);
  own = null;
}

/** Stop sending the proof, for example because the browser has another session. */
export function forgetProof(): void {
  own = null;
}

/** Subscribe to sign-ins and sign-outs in other tabs. Returns an unsubscribe function. */
export function onProofChange(listener: () => void): () => void {
  const heard = (event: StorageEvent) => {
    if ((event.key === KEY || event.key === null) && localStorage.getItem(KEY) !== own) listener();
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}

/** Store the new session's proof, and reload the page, so that no data of an earlier user remain. */
export function enterWith({ proof }: SignInResponse): void {
  keepProof(proof);
  const { pathname, search } = window.location;
  window.location.replace(pathname.startsWith("/sign-in") ? "/" : pathname + search);
}
