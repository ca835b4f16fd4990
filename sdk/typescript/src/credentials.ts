import { readFile } from "node:fs/promises";
import { codeOf, type Login, readContext, saveLogin } from "./contexts.ts";
import { ConfigurationError } from "./errors.ts";
import { renewLogin } from "./login.ts";

/** Authenticates calls to one service. */
export type Credential =
  | { readonly kind: "none" }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "file"; readonly path: string; readonly isRequired: boolean }
  | { readonly kind: "login"; readonly file: string; readonly context: string };

/** How long before its expiry a token is renewed, so that it does not expire during a call. */
const MARGIN_MS = 30_000;
/**
 * If the issuer refuses a refresh token, another program may have just used it and be about to save its successor. A
 * call therefore reads the file up to LOOKS times. After that, the token counts as refused for REFUSAL_LASTS_MS, and
 * no request is sent to the issuer.
 */
const LOOKS = 20;
const SCAN_EVERY_MS = 100;
const REFUSAL_LASTS_MS = 30_000;

/** Create the function that returns a credential's token for each call. */
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

/**
 * The token of a context that logged in through an issuer. Before the token expires, it is renewed once on behalf of
 * all calls, and saved.
 */
function renewedToken(file: string, name: string, nowMs: () => number): () => Promise<string> {
  let kept: { readonly token: string; readonly login: Login } | null = null;
  let renewing: Promise<string> | null = null;
  const isGood = (it: typeof kept) => it !== null && it.login.expiresAtMs - MARGIN_MS > nowMs();
  // A new refresh token that could not be saved, and the token that is still in the file.
  let unsaved: { readonly saved: string; readonly next: string } | null = null;
  // The refresh token that the issuer refused, and when it did. The refusal becomes final if the file still contains
  // that token when a call reads it for the last time.
  let refused: { readonly token: string; readonly atMs: number; readonly isFinal: boolean } | null = null;
  const isRefused = (token: string) => {
    const sinceMs = nowMs() - (refused?.atMs ?? 0);
    return token === refused?.token && sinceMs >= 0 && sinceMs < REFUSAL_LASTS_MS;
  };
  const find = async () => {
    for (let looks = 0; looks < LOOKS; looks += 1) {
      // The command line or another program may have renewed the token in the meantime.
      const context = readContext(file, name);
      if (context?.login == null) throw new ConfigurationError(`context ${name} no longer has a login`);
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
        await new Promise((resolve) => setTimeout(resolve, SCAN_EVERY_MS));
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
        // The file may be read-only, such as a mounted secret. Continue with the new refresh token in memory.
        unsaved = { saved, next: renewed.login.refreshToken ?? refreshToken };
      }
      return renewed.token;
    }
    if (refused !== null) refused = { ...refused, isFinal: true };
    throw new ConfigurationError(
      `the login of context ${name} has expired: log in again with \`rollcall login --oidc --context ${name}\``,
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
