import { setTimeout as pause } from "node:timers/promises";
import { explainTlsError } from "@rollcall/domain";
import { LONGEST_TOKEN } from "@rollcall/identity";
import { Failure } from "../failure.ts";

/** The endpoints of an issuer. */
export interface IssuerEndpoints {
  readonly token: string;
  /** The endpoint of the device flow; null if the issuer has none. */
  readonly device: string | null;
}

/** The tokens of a login. */
export interface IssuedTokens {
  /** The token that has the audience and is sent to the control plane. */
  readonly token: string;
  readonly refreshToken: string | null;
  /** When the token expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** A login that is waiting to be confirmed in a browser. */
export interface PendingLogin {
  readonly deviceCode: string;
  /** The code to type in the browser. */
  readonly userCode: string;
  readonly verificationUri: string;
  /** The address with the code already in it; null if the issuer gives none. */
  readonly completeUri: string | null;
  readonly expiresInMs: number;
  readonly intervalMs: number;
}

/** The client that logs in. */
export interface OidcClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** The latest time that a Date can represent, in milliseconds. */
const LAST_TIME_MS = 8_640_000_000_000_000;

const TIMEOUT_MS = 10_000;
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
/** The polling interval of RFC 8628 if the issuer gives none. Also the increase when the issuer asks to slow down. */
const DEFAULT_INTERVAL_S = 5;
const SLOW_DOWN_MS = 5_000;

/** Ask an issuer for its endpoints. Throws Failure. */
export async function discoverIssuer(issuer: string, signal: AbortSignal): Promise<IssuerEndpoints> {
  const place = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const { status, fields } = await send(place, null, signal);
  if (status !== 200 || fields.issuer !== issuer) {
    throw new Failure(`the server at ${place} is not the issuer ${issuer}`);
  }
  const token = textIn(fields, "token_endpoint");
  if (token === null) throw new Failure(`the issuer ${issuer} has no token endpoint`);
  return { token, device: textIn(fields, "device_authorization_endpoint") };
}

/** Start a login with the device flow of RFC 8628. Throws Failure. */
export async function beginLogin(
  { device }: IssuerEndpoints,
  client: OidcClient & { readonly scopes: string },
  signal: AbortSignal,
): Promise<PendingLogin> {
  if (device === null) {
    throw new Failure(
      `the issuer ${client.issuer} does not support device login\nhint: get a token from it in another way, and pass ` +
        `it with \`rollcall login --token-file\``,
    );
  }
  const { clientId: client_id, scopes: scope, audience } = client;
  const { status, fields } = await send(device, { client_id, scope, audience }, signal);
  const [deviceCode, userCode] = [textIn(fields, "device_code"), textIn(fields, "user_code")];
  const uri = textIn(fields, "verification_uri");
  if (status !== 200 || deviceCode === null || userCode === null || uri === null) {
    throw refused(client.issuer, fields);
  }
  return {
    deviceCode,
    userCode,
    verificationUri: uri,
    completeUri: textIn(fields, "verification_uri_complete"),
    expiresInMs: numberIn(fields, "expires_in", 600) * 1_000,
    intervalMs: numberIn(fields, "interval", DEFAULT_INTERVAL_S) * 1_000,
  };
}

/** Wait until the login is confirmed. Throws Failure when it is refused, or not confirmed in time. */
export async function finishLogin(
  endpoints: IssuerEndpoints,
  client: OidcClient,
  login: PendingLogin,
  options: { readonly signal: AbortSignal; wallMs(): number },
): Promise<IssuedTokens> {
  const { signal, wallMs } = options;
  const untilMs = wallMs() + login.expiresInMs;
  let { intervalMs } = login;
  while (wallMs() < untilMs) {
    await pause(intervalMs, undefined, { signal });
    const form = {
      grant_type: DEVICE_GRANT,
      device_code: login.deviceCode,
      client_id: client.clientId,
    };
    const { status, fields } = await send(endpoints.token, form, signal);
    if (status === 200) return tokensIn(fields, client, wallMs());
    if (fields.error === "slow_down") intervalMs += SLOW_DOWN_MS;
    else if (fields.error !== "authorization_pending") throw refused(client.issuer, fields);
  }
  throw new Failure("the login was not confirmed in time\nhint: start again with `rollcall login --oidc`");
}

/**
 * Get a new token for a login; null if the issuer no longer renews it. Throws Failure when the issuer does not respond.
 */
export async function renewLogin(
  client: OidcClient,
  refreshToken: string,
  options: { readonly signal: AbortSignal; wallMs(): number },
): Promise<IssuedTokens | null> {
  const { signal, wallMs } = options;
  const { token } = await discoverIssuer(client.issuer, signal);
  const form = {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_id: client.clientId,
  };
  const { status, fields } = await send(token, form, signal);
  if (status === 200) {
    const renewed = tokensIn(fields, client, wallMs());
    // Keep the current refresh token if the issuer sends none, because it does not rotate them.
    return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken };
  }
  if (fields.error === "invalid_grant") return null;
  throw refused(client.issuer, fields);
}

/** The claims of a token, not verified, because the server verifies them. Null if the token is not a JWT. */
function claimsOf(token: string): Fields | null {
  try {
    const body = token.split(".")[1] ?? "";
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null ? (claims as Fields) : null;
  } catch {
    return null;
  }
}

function tokensIn(fields: Fields, client: OidcClient, nowMs: number): IssuedTokens {
  const given = [textIn(fields, "access_token"), textIn(fields, "id_token")];
  const token = given.find((it) => it !== null && isFor(it, client.audience)) ?? null;
  if (token === null) {
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
  const exp = claimsOf(token)?.exp;
  const lifeMs = numberIn(fields, "expires_in", 300) * 1_000;
  return {
    token,
    refreshToken: textIn(fields, "refresh_token"),
    // When to renew the token. The server checks the token's times on each call.
    expiresAtMs: Math.max(0, Math.min(LAST_TIME_MS, typeof exp === "number" ? exp * 1_000 : nowMs + lifeMs)),
  };
}

function isFor(token: string, audience: string): boolean {
  const aud = claimsOf(token)?.aud;
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
}

async function send(url: string, form: Readonly<Record<string, string>> | null, signal: AbortSignal) {
  const { protocol, hostname, host } = new URL(url);
  const isLocal = /^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname);
  // Refuse clear text, because the request can contain a refresh token.
  if (protocol !== "https:" && !isLocal) throw new Failure(`${url} is not an https:// address`);
  const post = form === null ? {} : { method: "POST", body: new URLSearchParams(form) };
  const ends = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const response = await fetch(url, { ...post, redirect: "error", signal: ends });
    const fields: unknown = await response.json();
    return { status: response.status, fields: Object(fields) as Fields };
  } catch (cause) {
    signal.throwIfAborted();
    const why = Object(Object(cause).cause).code ?? Object(cause).message;
    const isDistrusted = explainTlsError(String(why))?.option === "authority";
    const hint = isDistrusted ? "\nhint: set NODE_EXTRA_CA_CERTS to trust a private authority" : "";
    throw new Failure(`cannot reach the issuer at ${host}: ${why}${hint}`, { cause });
  }
}

function refused(issuer: string, fields: Fields): Failure {
  const why = textIn(fields, "error_description") ?? textIn(fields, "error") ?? "no reason given";
  return new Failure(`the issuer ${issuer} refused the login: ${why}`);
}

function textIn(fields: Fields, key: string): string | null {
  const value = fields[key];
  return typeof value === "string" && value !== "" ? value : null;
}

function numberIn(fields: Fields, key: string, otherwise: number): number {
  const value = Number(fields[key]);
  return value > 0 ? value : otherwise;
}
