import { urlProblem } from "@rollcall/config";

/** Whether what comes from there can be trusted to come from there. */
export function isSafeUrl({ protocol, hostname }: URL): boolean {
  const isLocal = /^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname);
  return protocol === "https:" || (protocol === "http:" && isLocal);
}

/** What is wrong with the URL of an issuer, by OpenID Connect Discovery; null when nothing is. */
export function issuerProblem(text: string): string | null {
  const problem = unsafeProblem(text, { queries: false });
  if (problem !== null || /^https?:/.test(text)) return problem;
  return "an issuer is compared with its tokens letter by letter, and none writes https:// in capital letters";
}

/** What is wrong with the URL of an issuer's keys; null when nothing is. */
export function keysUrlProblem(text: string): string | null {
  return unsafeProblem(text, { queries: true });
}

function unsafeProblem(text: string, { queries }: { readonly queries: boolean }): string | null {
  const problem = urlProblem(text, "https://login.example/realm", { schemes: ["https", "http"], paths: true, queries });
  if (problem !== null || isSafeUrl(new URL(text))) return problem;
  // What is fetched from there decides who may call.
  return `${text} must begin with https://, unless it is on this machine`;
}
