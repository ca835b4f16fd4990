// Renews a login at its OpenID Connect issuer.
import { Code } from "@connectrpc/connect";
import type { Login } from "./contexts.ts";
import { ConfigurationError, UnreachableError } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

const TIMEOUT_MS = 10_000;
const MOST_ANSWER_BYTES = 1024 * 1024;

/**
 * Get a new token for a login. Returns null if the issuer no longer renews the login. Rejects with
 * UnreachableError if the issuer does not respond, and with ConfigurationError if it refuses.
 */
export async function renewLogin(
  login: Login,
  refreshToken: string,
  nowMs: number,
): Promise<{ readonly token: string; readonly login: Login } | null> {
  const { issuer, clientId } = login;
  const place = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const found = await send(place, null);
  const { token_endpoint: endpoint } = found.fields;
  if (found.status !== 200 || found.fields.issuer !== issuer || typeof endpoint !== "string") {
    throw new ConfigurationError(`the server at ${place} is not the issuer ${issuer}`);
  }
  const form = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId };
  const { status, fields } = await send(endpoint, form);
  if (status !== 200) {
    if (fields.error === "invalid_grant") return null;
    const why = fields.error_description ?? fields.error ?? "without a reason";
    throw new ConfigurationError(`the issuer ${issuer} refused the login: ${why}`);
  }
  return tokensIn(fields, login, nowMs);
}

function tokensIn(fields: Fields, login: Login, nowMs: number) {
  const token = [fields.access_token, fields.id_token].find(
    (it): it is string => typeof it === "string" && isFor(it, login.audience),
  );
  if (token === undefined) {
    throw new ConfigurationError(`the issuer ${login.issuer} issued no token for the audience ${login.audience}`);
  }
  const { exp } = claimsOf(token);
  const lifeMs = (Number(fields.expires_in) || 300) * 1_000;
  const expiresAtMs = typeof exp === "number" ? exp * 1_000 : nowMs + lifeMs;
  const next = fields.refresh_token;
  // Keep the previous refresh token, because an issuer that does not rotate refresh tokens sends no new one.
  const refreshToken = typeof next === "string" && next !== "" ? next : login.refreshToken;
  return { token, login: { ...login, refreshToken, expiresAtMs } };
}

function isFor(token: string, audience: string): boolean {
  const { aud } = claimsOf(token);
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
}

/**
 * Read the claims of a token without verifying them, because that is the server's task. Empty if the token is not
 * a JWT.
 */
function claimsOf(token: string): Fields {
  try {
    return Object(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8")));
  } catch {
    return {};
  }
}

async function send(url: string, form: Readonly<Record<string, string>> | null) {
  const { protocol, hostname, host } = new URL(url);
  // Require https, because a refresh token is sent to this address.
  if (protocol !== "https:" && !/^(localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(hostname)) {
    throw new ConfigurationError(`${url} is not an https:// address`);
  }
  const post = form === null ? {} : { method: "POST", body: new URLSearchParams(form) };
  try {
    const response = await fetch(url, { ...post, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    let text = "";
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      text += decoder.decode(part as Uint8Array, { stream: true });
      if (text.length > MOST_ANSWER_BYTES) throw new Error("the response is too long");
    }
    return { status: response.status, fields: Object(JSON.parse(text)) as Fields };
  } catch (cause) {
    const { message } = Object(cause) as Error;
    throw new UnreachableError({
      code: Code.Unavailable,
      message: `cannot reach the issuer at ${host}: ${message}`,
      cause,
    });
  }
}
