import { readFile } from "node:fs/promises";
import { codeOf, type Login, readContext, saveLogin } from "./contexts.ts";
import { ConfigurationError } from "./errors.ts";
import { renewLogin } from "./login.ts";

/** What proves to one service who calls. */
export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "file"; readonly path: string; readonly isRequired: boolean }
  | { readonly kind: "login"; readonly file: string; readonly context: string };

/** A token that expires sooner is renewed, or it would expire during the call. */
const MARGIN_MS = 30_000;
/**
 * A refresh token that the issuer refuses may have been used by another program a moment ago, which then saves the next
 * one: the file is read again so often. After that it counts as refused for so long without a word to the issuer.
 */
const LOOKS = 20;
const LOOK_EVERY_MS = 100;
const REFUSAL_LASTS_MS = 30_000;

/** How to get the token of a credential, for each call. */
export function tokenSource(credential: Credential, nowMs: () => number = Date.now): () => Promise<string | null> {
  switch (credential.kind) {
    case "none":
      return () => Promise.resolve(null);
    case "token":
      return () => Promise.resolve(credential.token);
    case "file":
      return () => readToken(credential.path, credential.isRequired);
    case "login":
      return renewedToken(credential.file, credential.context, nowMs);
  }
}

async function readToken(path: string, isRequired: boolean): Promise<string | null> {
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (token !== "") return token;
  } catch (cause) {
    if (isRequired || codeOf(cause) !== "ENOENT") {
      throw new ConfigurationError(`cannot read the access token in ${path}: ${codeOf(cause)}`, { cause });
    }
  }
  if (isRequired) throw new ConfigurationError(`cannot read the access token: there is none in ${path}`);
  return null;
}

/** The token of a context that logged in by an issuer: renewed and saved before it expires, once for all calls. */
function renewedToken(file: string, name: string, nowMs: () => number): () => Promise<string> {
  let kept: { readonly token: string; readonly login: Login } | null = null;
  let renewing: Promise<string> | null = null;
  const isGood = (it: typeof kept) => it !== null && it.login.expiresAtMs - MARGIN_MS > nowMs();
  // By the refresh token that the file has: the one that took its place, and could not be saved.
  let unsaved: { readonly saved: string; readonly next: string } | null = null;
  // The refresh token that the issuer has refused; final once the file has kept it for all looks of a call.
  let refused: { readonly token: string; readonly atMs: number; readonly isFinal: boolean } | null = null;
  const isRefused = (token: string) => {
    const sinceMs = nowMs() - (refused?.atMs ?? 0);
    return token === refused?.token && sinceMs >= 0 && sinceMs < REFUSAL_LASTS_MS;
  };
  const find = async () => {
    for (let looks = 0; looks < LOOKS; looks += 1) {
      // The command line or another program may have renewed it meanwhile.
      const context = readContext(file, name);
      if (context?.login == null) throw new ConfigurationError(`context ${name} has no login any more`);
      const { token, login } = context;
      if (token !== null && isGood({ token, login })) {
        kept = { token, login };
        return token;
      }
      const { refreshToken: saved } = login;
      if (saved === null) break;
      const refreshToken: string = unsaved?.saved === saved ? unsaved.next : saved;
      if (refused !== null && isRefused(refreshToken)) {
        if (refused.isFinal) break;
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
        continue;
      }
      const renewed = await renewLogin(login, refreshToken, nowMs());
      if (renewed === null) {
        refused = { token: refreshToken, atMs: nowMs(), isFinal: refused?.token === refreshToken && refused.isFinal };
        continue;
      }
      refused = null;
      kept = renewed;
      try {
        await saveLogin(file, name, renewed.token, renewed.login);
      } catch {
        // A file that cannot be written, of a secret for example, keeps no program from what it has: this one goes on
        // with the next refresh token.
        unsaved = { saved, next: renewed.login.refreshToken ?? refreshToken };
      }
      return renewed.token;
    }
    if (refused !== null) refused = { ...refused, isFinal: true };
    throw new ConfigurationError(
      `the login of context ${name} is over: log in again with \`rollcall login --oidc --context ${name}\``,
    );
  };
  return () => {
    if (kept !== null && isGood(kept)) return Promise.resolve(kept.token);
    renewing ??= find().finally(() => {
      renewing = null;
    });
    return renewing;
  };
}
