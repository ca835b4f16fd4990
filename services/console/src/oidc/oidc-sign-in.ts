import type { OidcAnswer } from "@rollcall/api/rollcall/console/v1/console_pb";
import { describeError, reasonOf, refuse } from "@rollcall/errors";
import type { Authenticator, IdentifiedCaller } from "@rollcall/identity";
import { isSafeUrl, issuerFetch, type OidcIssuer } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import type { Configuration } from "openid-client";
import { type Attempt, createAttemptSeal } from "./sealed-attempt.ts";

/** The path to which issuers redirect the browser. */
const CALLBACK_PATH = "/sign-in/oidc";

export interface OidcSignInOptions {
  readonly issuers: readonly OidcIssuer[];
  readonly clusterSecret: Buffer;
  readonly authenticate: Authenticator;
  readonly clock: Pick<Clock, "wallMs" | "nowMs">;
  readonly log: Logger;
}

/** Sign-in with an issuer by the authorization code flow with PKCE. */
export interface OidcSignIn {
  /**
   * Returns the address to open in the browser, and the attempt against which the issuer's response is checked. Throws
   * SIGN_IN_FAILED and ISSUER_UNAVAILABLE.
   */
  begin(
    issuer: string,
    origin: string,
    signal: AbortSignal,
  ): Promise<{ readonly url: string; readonly attempt: string }>;
  /**
   * Identify the user from the issuer's response. Throws the errors of begin(), and those of any call with the
   * issuer's token.
   */
  finish(answer: Answer, origin: string, signal: AbortSignal): Promise<IdentifiedCaller>;
}

type Answer = Pick<OidcAnswer, "attempt" | "callbackUrl">;

/** How long a user can take to log in at the issuer. */
const ATTEMPT_MS = 600_000;
const TIMEOUT_S = 10;
/** How long an issuer's discovery document is cached. */
const KNOWN_MS = 600_000;
/** Limits for concurrent sign-ins that call issuers, and for those that wait. */
const MOST_AT_ONCE = 8;
const MOST_WAITING = 64;

/** Prepare sign-in for the issuers that have a client id. Issuers are contacted only when the first sign-in starts. */
export function createOidcSignIn(options: OidcSignInOptions): OidcSignIn {
  const { issuers, clusterSecret, authenticate, clock, log } = options;
  const seal = createAttemptSeal(clusterSecret);
  const limiter = new Limiter(MOST_AT_ONCE);
  const known = new Map<string, { readonly found: Promise<Configuration>; readonly untilMs: number }>();

  const configurationOf = (issuer: OidcIssuer): Promise<Configuration> => {
    const last = known.get(issuer.issuer);
    if (last !== undefined && clock.nowMs() < last.untilMs) return last.found;
    const found = discover(issuer);
    known.set(issuer.issuer, { found, untilMs: clock.nowMs() + KNOWN_MS });
    found.catch(() => known.delete(issuer.issuer));
    return found;
  };

  const bounded = async <T>(issuer: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    if (limiter.waiting >= MOST_WAITING) {
      throw refuse("OVERLOADED", "too many concurrent sign-ins with issuers; try again", { retryAfterMs: 2_000 });
    }
    const leave = await limiter.enter(signal);
    try {
      return await work();
    } catch (error) {
      throw reasonOf(error) === undefined ? issuerError(issuer, error, log) : error;
    } finally {
      leave();
    }
  };

  return {
    begin: async (name, origin, signal) => {
      const issuer = issuerNamed(issuers, name);
      return bounded(name, signal, async () => {
        const client = await import("openid-client");
        const config = await configurationOf(issuer);
        const attempt: Attempt = {
          issuer: name,
          state: client.randomState(),
          nonce: client.randomNonce(),
          verifier: client.randomPKCECodeVerifier(),
          redirectUri: `${origin}${CALLBACK_PATH}`,
          expiresAtMs: clock.wallMs() + ATTEMPT_MS,
        };
        const url = client.buildAuthorizationUrl(config, {
          redirect_uri: attempt.redirectUri,
          scope: scopesOf(issuer),
          audience: issuer.audience,
          code_challenge: await client.calculatePKCECodeChallenge(attempt.verifier),
          code_challenge_method: "S256",
          state: attempt.state,
          nonce: attempt.nonce,
        });
        // Check the URL, because the console's page opens it, and a script URL would run in the page.
        if (!isSafeUrl(url)) throw signInFailed(name, "its authorization endpoint is not an https:// address");
        return { url: url.href, attempt: seal.seal(attempt) };
      });
    },
    finish: async ({ attempt: sealed, callbackUrl }, origin, signal) => {
      const attempt = seal.open(sealed);
      if (attempt === null) throw signInFailed("", "this sign-in was not started here");
      if (attempt.expiresAtMs <= clock.wallMs()) throw signInFailed(attempt.issuer, "the sign-in took too long");
      const redirectUri = `${origin}${CALLBACK_PATH}`;
      const url = URL.canParse(callbackUrl) ? new URL(callbackUrl) : null;
      if (url === null || redirectUri !== attempt.redirectUri || `${url.origin}${url.pathname}` !== redirectUri) {
        throw signInFailed(attempt.issuer, "the browser returned to a different address");
      }
      const issuer = issuerNamed(issuers, attempt.issuer);
      const tokens = await bounded(issuer.issuer, signal, async () => {
        const client = await import("openid-client");
        const config = await configurationOf(issuer);
        return client.authorizationCodeGrant(config, url, {
          pkceCodeVerifier: attempt.verifier,
          expectedState: attempt.state,
          expectedNonce: attempt.nonce,
          idTokenExpected: true,
        });
      });
      return callerOfTokens([tokens.access_token, tokens.id_token ?? ""], issuer, authenticate);
    },
  };
}

async function discover(issuer: OidcIssuer): Promise<Configuration> {
  const client = await import("openid-client");
  const url = new URL(issuer.issuer);
  return client.discovery(url, issuer.clientId ?? "", undefined, client.None(), {
    timeout: TIMEOUT_S,
    [client.customFetch]: issuerFetch(issuer.caFile),
    // Allow http:// only for this machine, as the configuration does.
    ...(url.protocol === "http:" && isSafeUrl(url) ? { execute: [client.allowInsecureRequests] } : {}),
  });
}

function issuerNamed(issuers: readonly OidcIssuer[], name: string): OidcIssuer {
  const issuer = issuers.find((it) => it.issuer === name && it.clientId !== null);
  if (issuer === undefined) throw signInFailed(name, "no issuer with this name and a client id is configured");
  return issuer;
}

/** The scopes to request, without offline_access, because the console renews sessions without the issuer. */
function scopesOf({ scopes }: OidcIssuer): string {
  return scopes
    .split(/\s+/)
    .filter((scope) => scope !== "offline_access")
    .join(" ");
}

/** Authenticate with the first of the tokens that has our audience, as for any call. */
async function callerOfTokens(
  tokens: readonly string[],
  { issuer }: OidcIssuer,
  authenticate: Authenticator,
): Promise<IdentifiedCaller> {
  const whys = new Set<string>();
  for (const token of tokens) {
    try {
      const caller = token === "" ? null : await authenticate(token);
      if (caller?.kind === "person" && caller.issuer === issuer) return caller;
    } catch (error) {
      // The access token may have another audience, or may not be a JWT. In that case, try the id token.
      if (reasonOf(error) !== "TOKEN_INVALID") throw error;
      const { message, metadata } = describeError(error);
      // Refuse an unverified address, even if the other token does not contain it.
      if (metadata.unverified !== undefined) throw signInFailed(issuer, message);
      whys.add(message);
    }
  }
  throw signInFailed(issuer, whys.size === 0 ? "it returned no token for this audience" : [...whys].join("; "));
}

function signInFailed(issuer: string, why: string, cause?: unknown): Error {
  const from = issuer === "" ? "" : ` at ${issuer}`;
  return refuse("SIGN_IN_FAILED", `signing in${from} failed: ${why}; start again`, {
    metadata: { issuer, why },
    cause,
  });
}

/** Codes of openid-client for a response that was not requested or was tampered with. */
const NOT_OURS = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_AUTHORIZATION_RESPONSE_ERROR",
]);

/** A refusal by the issuer fails the sign-in; everything else means that the issuer is unavailable. */
function issuerError(issuer: string, error: unknown, log: Logger): Error {
  const { code = "", error: said, error_description: description, cause } = Object(error);
  if (typeof said === "string") return signInFailed(issuer, String(description ?? said), error);
  if (NOT_OURS.has(code)) return signInFailed(issuer, "its answer does not belong to this sign-in", error);
  log.warn({ issuer, err: error }, "sign-in with issuer failed");
  const known = String(Object(cause).code ?? Object(error).message ?? code);
  return refuse("ISSUER_UNAVAILABLE", `the issuer ${issuer} is unreachable: ${known}`, {
    metadata: { issuer },
    retryAfterMs: 5_000,
    cause: error,
  });
}
