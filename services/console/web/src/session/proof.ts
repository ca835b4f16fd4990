/** The header that carries the page's half of a session. The other half is a cookie that no script can read. */
export const PROOF_HEADER = "x-rollcall-console";

const KEY = "rollcall.proof";

/** The proof that sign-in answered; null when the browser has none. */
export function readProof(): string | null {
  return localStorage.getItem(KEY);
}

/** Keep the proof for all tabs of the browser. */
export function keepProof(proof: string): void {
  localStorage.setItem(KEY, proof);
}

/** Remove it: the other tabs notice. */
export function dropProof(): void {
  localStorage.removeItem(KEY);
}

/** Learn that another tab signed in or out. */
export function onProofChange(listener: () => void): () => void {
  const heard = (event: StorageEvent) => {
    if (event.key === KEY || event.key === null) listener();
  };
  window.addEventListener("storage", heard);
  return () => window.removeEventListener("storage", heard);
}
