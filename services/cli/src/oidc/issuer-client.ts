import { explainTlsError } from "@rollcall/domain";
import { LONGEST_TOKEN } from "@rollcall/identity";
import { isSafeUrl, issuerFetch } from "@rollcall/identity/oidc";
import { decodeJwt } from "jose";
import type { Configuration, DeviceAuthorizationResponse, TokenEndpointResponse } from "openid-client";
import { Failure } from "../failure.ts";

/** The tokens of a login. */
export interface IssuedTokens {
  /** The token that has the audience and is sent to the control plane. */
  readonly token: string;
  readonly refreshToken: string | null;
  /** When the token expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** The client that logs in. */
export interface OidcClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
}

/** How to wait for an issuer, and the time of the machine. */
export interface LoginOptions {
  readonly signal: AbortSignal;
  wallMs(): number;
}

/** A login that is waiting to be confirmed in a browser. */
export interface PendingLogin {
  /** The code to type in the browser. */
  readonly userCode: string;
  readonly verificationUri: string;
  /** The address with the code already in it; null if the issuer gives none. */
  readonly completeUri: string | null;
  /** Wait until the login is confirmed. Throws Failure when it is refused, or not confirmed in time. */
  finish(): Promise<IssuedTokens>;
}

/** The latest time that a Date can represent, in milliseconds. */
const LAST_TIME_MS = 8_640_000_000_000_000;
const TIMEOUT_S = 10;
/** The life of a token whose issuer names none, in seconds. */
const DEFAULT_LIFE_S = 300;
/**
 * How far the clock of this machine may differ from the issuer's, in seconds. The control plane checks the times of a
 * token on each call, so that a laptop with a wrong clock can still log in.
 */
const CLOCK_TOLERANCE_S = 86_400;

/** Start a login with the device flow of RFC 8628. Throws Failure. */
export async function beginLogin(
  client: OidcClient & { readonly scopes: string },
  { signal, wallMs }: LoginOptions,
): Promise<PendingLogin> {
  const openid = await import("openid-client");
  const config = await discover(client, signal);
  if (config.serverMetadata().device_authorization_endpoint === undefined) {
    throw new Failure(
      `the issuer ${client.issuer} does not support device login\nhint: get a token from it in another way, and pass ` +
        `it with \`rollcall login --token-file\``,
    );
  }
  const asked = openid.initiateDeviceAuthorization(config, { scope: client.scopes, audience: client.audience });
  const pending: DeviceAuthorizationResponse = await reached(client, signal, asked);
  const finish = async () => {
    // The issuer ends the login as well, but its answer can get lost.
    const limit = AbortSignal.timeout(pending.expires_in * 1_000);
    const polled = openid.pollDeviceAuthorizationGrant(config, pending, undefined, {
      signal: AbortSignal.any([signal, limit]),
    });
    const answer = await reached(client, signal, polled).catch((error: unknown) => {
      if (!limit.aborted) throw error;
      throw new Failure("the login was not confirmed in time\nhint: start again with `rollcall login --oidc`");
    });
    return tokensIn(answer, client, wallMs());
  };
  return {
    userCode: pending.user_code,
    verificationUri: pending.verification_uri,
    completeUri: pending.verification_uri_complete ?? null,
    finish,
  };
}

/**
 * Get a new token for a login; null if the issuer no longer renews it. Throws Failure when the issuer does not respond.
 */
export async function renewLogin(
  client: OidcClient,
  refreshToken: string,
  { signal, wallMs }: LoginOptions,
): Promise<IssuedTokens | null> {
  const openid = await import("openid-client");
  const config = await discover(client, signal);
  const renewing = openid.refreshTokenGrant(config, refreshToken).catch((error: unknown) => {
    if (Object(error).error === "invalid_grant") return null;
    throw error;
  });
  const answer = await reached(client, signal, renewing);
  if (answer === null) return null;
  const renewed = tokensIn(answer, client, wallMs());
  // Keep the current refresh token if the issuer sends none, because it does not rotate them.
  return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken };
}

async function discover(client: OidcClient, signal: AbortSignal): Promise<Configuration> {
  const openid = await import("openid-client");
  const url = new URL(client.issuer);
  const fetchFromIssuer = issuerFetch(null);
  const found = openid.discovery(url, client.clientId, { [openid.clockTolerance]: CLOCK_TOLERANCE_S }, openid.None(), {
    timeout: TIMEOUT_S,
    [openid.customFetch]: (address, options) => {
      const signals = [signal, options.signal].filter((it) => it !== undefined && it !== null);
      return fetchFromIssuer(address, { ...options, signal: AbortSignal.any(signals) });
    },
    // Allow http:// only for this machine.
    ...(url.protocol === "http:" && isSafeUrl(url) ? { execute: [openid.allowInsecureRequests] } : {}),
  });
  return reached(client, signal, found);
}

/** Wait for an answer of the issuer. Throws Failure if it refuses or does not respond, and the signal's reason. */
async function reached<T>({ issuer }: OidcClient, signal: AbortSignal, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    signal.throwIfAborted();
    const { error: said, error_description: description, code = "" } = Object(error);
    if (typeof said === "string") throw new Failure(`the issuer ${issuer} refused the login: ${description ?? said}`);
    if (String(code).startsWith("OAUTH_")) {
      const why = Object(error).message;
      throw new Failure(`the server at ${issuer} did not answer as an OpenID Connect issuer: ${why}`, { cause: error });
    }
    throw unreachable(issuer, error);
  }
}

function unreachable(issuer: string, error: unknown): Failure {
  const { cause = error } = Object(error);
  const why = String(Object(cause).code ?? Object(cause).message ?? cause);
  const isDistrusted = explainTlsError(why)?.option === "authority";
  const hint = isDistrusted ? "\nhint: set NODE_EXTRA_CA_CERTS to trust a private authority" : "";
  return new Failure(`cannot reach the issuer at ${new URL(issuer).host}: ${why}${hint}`, { cause: error });
}

function tokensIn(answer: TokenEndpointResponse, client: OidcClient, nowMs: number): IssuedTokens {
  const given = [answer.access_token, answer.id_token];
  const token = given.find((it) => it !== undefined && isFor(it, client.audience));
  if (token === undefined) {
    throw new Failure(
      `the issuer ${client.issuer} issued no token for the audience ${client.audience}\nhint: the operator of ` +
        `the issuer must allow that audience for the client ${client.clientId}`,
    );
  }
  if (token.length > LONGEST_TOKEN) {
    throw new Failure(
      `the issuer ${client.issuer} issued a token of ${token.length} characters; servers accept at most ` +
        `${LONGEST_TOKEN}\nhint: configure the issuer to include only the groups in OIDC.RoleMap`,
    );
  }
  const { exp } = claimsOf(token);
  const lifeMs = (answer.expires_in ?? DEFAULT_LIFE_S) * 1_000;
  return {
    token,
    refreshToken: answer.refresh_token ?? null,
    // When to renew the token. The server checks the token's times on each call.
    expiresAtMs: Math.max(0, Math.min(LAST_TIME_MS, typeof exp === "number" ? exp * 1_000 : nowMs + lifeMs)),
  };
}

function isFor(token: string, audience: string): boolean {
  const { aud } = claimsOf(token);
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
}

/** The claims of a token, not verified, because the server verifies them. Empty if the token is not a JWT. */
function claimsOf(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}
