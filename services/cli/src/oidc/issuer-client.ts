import { setTimeout as pause } from "node:timers/promises";
import { LONGEST_TOKEN } from "@rollcall/identity";
import { Failure } from "../failure.ts";

/** The endpoints of an issuer. */
export interface IssuerEndpoints {
  readonly token: string;
  /** Null when it has no device flow. */
  readonly device: string | null;
}

/** The tokens of a login. */
export interface IssuedTokens {
  /** The one to send: the one for the audience. */
  readonly token: string;
  readonly refreshToken: string | null;
  /** When it expires, by the wall clock. */
  readonly expiresAtMs: number;
}

/** A login that waits to be confirmed in a browser. */
export interface PendingLogin {
  readonly deviceCode: string;
  /** The code to type there. */
  readonly userCode: string;
  readonly verificationUri: string;
  /** The same with the code in it; null when the issuer has none. */
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

/** The last moment that a Date can have. */
const LAST_TIME_MS = 8_640_000_000_000_000;

const TIMEOUT_MS = 10_000;
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
/** What RFC 8628 says when the issuer does not, and by how much more when it is asked to slow down. */
const DEFAULT_INTERVAL_S = 5;
const SLOW_DOWN_MS = 5_000;

/** Ask an issuer where its endpoints are. Throws Failure. */
export async function discoverIssuer(issuer: string, signal: AbortSignal): Promise<IssuerEndpoints> {
  const place = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const { status, fields } = await send(place, null, signal);
  if (status !== 200 || fields.issuer !== issuer) {
    throw new Failure(`what answers at ${place} is not the issuer ${issuer}`);
  }
  const token = textIn(fields, "token_endpoint");
  if (token === null) throw new Failure(`the issuer ${issuer} gives no tokens`);
  return { token, device: textIn(fields, "device_authorization_endpoint") };
}

/** Begin a login by the device flow of RFC 8628. Throws Failure. */
export async function beginLogin(
  { device }: IssuerEndpoints,
  client: OidcClient & { readonly scopes: string },
  signal: AbortSignal,
): Promise<PendingLogin> {
  if (device === null) {
    throw new Failure(
      `the issuer ${client.issuer} has no device login\nhint: get a token there by other means, and give it ` +
        `with \`rollcall login --token-file\``,
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
  throw new Failure("the login was not confirmed in time\nhint: begin again with `rollcall login --oidc`");
}

/**
 * Get a new token for a login; null when the issuer no longer renews it. Throws Failure when the issuer does not
 * answer.
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
    // An issuer that does not rotate refresh tokens sends none.
    return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken };
  }
  if (fields.error === "invalid_grant") return null;
  throw refused(client.issuer, fields);
}

/** The claims of a token, unchecked: the server checks them. Null when it is not a JWT. */
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
      `the issuer ${client.issuer} gave no token for the audience ${client.audience}\nhint: the operator of ` +
        `the issuer must let the client ${client.clientId} have that audience`,
    );
  }
  if (token.length > LONGEST_TOKEN) {
    throw new Failure(
      `the issuer ${client.issuer} gave a token of ${token.length} characters, and servers take ${LONGEST_TOKEN} at ` +
        "most\nhint: let the issuer write only those groups into it that OIDC.RoleMap has",
    );
  }
  const exp = claimsOf(token)?.exp;
  const lifeMs = numberIn(fields, "expires_in", 300) * 1_000;
  return {
    token,
    refreshToken: textIn(fields, "refresh_token"),
    // When to renew it. Whether its times can be is for the server to say, of each call.
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
  // A refresh token goes there.
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
    throw new Failure(
      `cannot reach the issuer at ${host}: ${why}\nhint: NODE_EXTRA_CA_CERTS names a private authority`,
      { cause },
    );
  }
}

function refused(issuer: string, fields: Fields): Failure {
  const why = textIn(fields, "error_description") ?? textIn(fields, "error") ?? "without a reason";
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
