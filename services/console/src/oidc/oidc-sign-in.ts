import type { OidcAnswer } from "@rollcall/api/rollcall/console/v1/console_pb";
import { describeError, reasonOf, refuse } from "@rollcall/errors";
import type { Authenticator, KnownCaller } from "@rollcall/identity";
import { fetchWhole, isSafeUrl, type OidcIssuer } from "@rollcall/identity/oidc";
import type { Clock, Logger } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import type { Configuration } from "openid-client";
import { type Attempt, createAttemptSeal } from "./sealed-attempt.ts";

/** Where issuers send the browser back to, below the origin of this server. */
const CALLBACK_PATH = "/sign-in/oidc";

export interface OidcSignInOptions {
  readonly issuers: readonly OidcIssuer[];
  readonly clusterSecret: Buffer;
  readonly authenticate: Authenticator;
  readonly clock: Pick<Clock, "wallMs" | "nowMs">;
  readonly log: Logger;
}

/** Sign-in at an issuer by the authorization code flow with PKCE. */
export interface OidcSignIn {
  /** Where the browser goes, and what it brings back. Throws SIGN_IN_FAILED and ISSUER_UNAVAILABLE. */
  begin(
    issuer: string,
    origin: string,
    signal: AbortSignal,
  ): Promise<{ readonly url: string; readonly attempt: string }>;
  /** Who it is, by what the issuer says. Throws the same, and what any call with the issuer's token would. */
  finish(answer: Answer, origin: string, signal: AbortSignal): Promise<KnownCaller>;
}

type Answer = Pick<OidcAnswer, "attempt" | "callbackUrl">;

/** How long a person may take at the issuer. */
const ATTEMPT_MS = 600_000;
const TIMEOUT_S = 10;
/** What an issuer says of itself is asked for again after so long. */
const KNOWN_MS = 600_000;
/** Sign-ins that talk to issuers at a time, and that wait for that. */
const MOST_AT_ONCE = 8;
const MOST_WAITING = 64;

/** What openid-client asks an issuer with. */
type IssuerFetch = (url: string, options: FetchOptions) => Promise<Response>;

interface FetchOptions {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null | undefined;
}

/** Answers that have no body, as Response wants it. */
const WITHOUT_BODY = [204, 205, 304];

/** Prepare sign-in at the issuers that have a client id. Nothing is asked before the first begins. */
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
      throw refuse("OVERLOADED", "too many sign-ins wait for issuers, try again", { retryAfterMs: 2_000 });
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
        // The browser goes there with the console's page: an address of another kind would run in it.
        if (!isSafeUrl(url)) throw signInFailed(name, "its authorization endpoint is not an https:// address");
        return { url: url.href, attempt: seal.seal(attempt) };
      });
    },
    finish: async ({ attempt: sealed, callbackUrl }, origin, signal) => {
      const attempt = seal.open(sealed);
      if (attempt === null) throw signInFailed("", "the sign-in was not begun here");
      if (attempt.expiresAtMs <= clock.wallMs()) throw signInFailed(attempt.issuer, "the sign-in took too long");
      const redirectUri = `${origin}${CALLBACK_PATH}`;
      const url = URL.canParse(callbackUrl) ? new URL(callbackUrl) : null;
      if (url === null || redirectUri !== attempt.redirectUri || `${url.origin}${url.pathname}` !== redirectUri) {
        throw signInFailed(attempt.issuer, "the browser came back to another address than it left from");
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
    // The configuration lets http:// be for this machine alone.
    ...(url.protocol === "http:" && isSafeUrl(url) ? { execute: [client.allowInsecureRequests] } : {}),
  });
}

function issuerNamed(issuers: readonly OidcIssuer[], name: string): OidcIssuer {
  const issuer = issuers.find((it) => it.issuer === name && it.clientId !== null);
  if (issuer === undefined) throw signInFailed(name, "no such issuer with a client id is configured");
  return issuer;
}

/** A session is renewed here, and not at the issuer. */
function scopesOf({ scopes }: OidcIssuer): string {
  return scopes
    .split(/\s+/)
    .filter((scope) => scope !== "offline_access")
    .join(" ");
}

/** The one of both tokens that is for here is taken as any call would take it. */
async function callerOfTokens(
  tokens: readonly string[],
  { issuer }: OidcIssuer,
  authenticate: Authenticator,
): Promise<KnownCaller> {
  const whys = new Set<string>();
  for (const token of tokens) {
    try {
      const caller = token === "" ? null : await authenticate(token);
      if (caller?.kind === "person" && caller.issuer === issuer) return caller;
    } catch (error) {
      // An access token may be for another audience, or no JWT at all; then the other one counts.
      if (reasonOf(error) !== "TOKEN_INVALID") throw error;
      const { message, metadata } = describeError(error);
      // What one of them says of the person is true whatever the other leaves out.
      if (metadata.unverified !== undefined) throw signInFailed(issuer, message);
      whys.add(message);
    }
  }
  throw signInFailed(issuer, whys.size === 0 ? "it gave no token for this audience" : [...whys].join("; "));
}

function signInFailed(issuer: string, why: string, cause?: unknown): Error {
  const from = issuer === "" ? "" : ` at ${issuer}`;
  return refuse("SIGN_IN_FAILED", `signing in${from} failed: ${why}; begin again`, {
    metadata: { issuer, why },
    cause,
  });
}

/** Codes of openid-client for an answer that was not asked for, or was tampered with. */
const NOT_OURS = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_AUTHORIZATION_RESPONSE_ERROR",
]);

/** What the issuer refused is the sign-in's fault; all else is that it cannot be asked. */
function issuerError(issuer: string, error: unknown, log: Logger): Error {
  const { code = "", error: said, error_description: description, cause } = Object(error);
  if (typeof said === "string") return signInFailed(issuer, String(description ?? said), error);
  if (NOT_OURS.has(code)) return signInFailed(issuer, "its answer does not belong to this sign-in", error);
  log.warn({ issuer, err: error }, "issuer not asked to sign in");
  const known = String(Object(cause).code ?? Object(error).message ?? code);
  return refuse("ISSUER_UNAVAILABLE", `the issuer ${issuer} cannot be asked just now: ${known}`, {
    metadata: { issuer },
    retryAfterMs: 5_000,
    cause: error,
  });
}

/**
 * Ask an issuer, trusting the authorities of `caFile` in place of those that Node.js knows; null for the latter.
 * Redirects are not followed, and nothing is sent over clear text but to this machine: a code and its secret go there.
 */
function issuerFetch(caFile: string | null): IssuerFetch {
  return async (address, { method, headers, body, signal }) => {
    const url = new URL(address);
    if (!isSafeUrl(url)) throw new Error(`${url.origin} is not an https:// address`);
    const sent = body === undefined || body === null ? null : String(body);
    const answer = await fetchWhole(url, { caFile, method, headers, body: sent, signal: signal ?? undefined });
    const { status, type } = answer;
    try {
      const kept = WITHOUT_BODY.includes(status) ? null : new Uint8Array(answer.body);
      return new Response(kept, { status, headers: { "content-type": type } });
    } catch (cause) {
      throw new Error(`${url.origin} answers with the status ${status}`, { cause });
    }
  };
}
