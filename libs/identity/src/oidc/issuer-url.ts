import { urlProblem } from "@rollcall/config";

/** Whether the responses of a URL are authentic, because it uses https, or http on this machine. */
export function isSafeUrl({ protocol, hostname }: URL): boolean {
  const isLocal = /^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname);
  return protocol === "https:" || (protocol === "http:" && isLocal);
}

/** The problem with an issuer's URL according to OpenID Connect Discovery; null when the URL is valid. */
export function issuerProblem(text: string): string | null {
  const problem = unsafeProblem(text, { queries: false });
  if (problem !== null || /^https?:/.test(text)) return problem;
  return "write https:// in lower case: the issuer must match its tokens exactly";
}

/** The problem with the URL of an issuer's keys; null when the URL is valid. */
export function keysUrlProblem(text: string): string | null {
  return unsafeProblem(text, { queries: true });
}

function unsafeProblem(text: string, { queries }: { readonly queries: boolean }): string | null {
  const problem = urlProblem(text, "https://login.example/realm", { schemes: ["https", "http"], paths: true, queries });
  if (problem !== null || isSafeUrl(new URL(text))) return problem;
  // Require https, because the response determines who can call.
  return `${text} must begin with https://, unless it is on this machine`;
}
