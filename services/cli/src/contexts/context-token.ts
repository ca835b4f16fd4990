import { Failure } from "../failure.ts";
import type { Shell } from "../shell.ts";
import type { ChosenContext, OidcLogin } from "./context.ts";

/** A token that is renewed before it expires. */
export type RenewedToken = () => Promise<string>;

/** Remaining lifetime below which a token is renewed, in milliseconds. Such a token could expire during the call. */
const MARGIN_MS = 30_000;

/**
 * The token of a context with a login at an issuer; an expired token is renewed and saved. Rejects with Failure when
 * the login has expired.
 */
export function renewedToken(
  chosen: ChosenContext,
  { token, login }: { readonly token: string | null; readonly login: OidcLogin },
  shell: Pick<Shell, "wallMs" | "interrupted">,
): RenewedToken {
  let renewing: Promise<string> | null = null;
  const isGood = token !== null && login.expiresAtMs - MARGIN_MS > shell.wallMs();
  return () => {
    if (isGood) return Promise.resolve(token);
    renewing ??= renew(chosen, login, shell);
    return renewing;
  };
}

async function renew(
  { context, save }: ChosenContext,
  login: OidcLogin,
  shell: Pick<Shell, "wallMs" | "interrupted">,
): Promise<string> {
  const { name } = context;
  const over =
    `the login of context ${name} has expired: log in again with ` + `\`rollcall login --oidc --context ${name}\``;
  if (login.refreshToken === null) throw new Failure(over);
  const { renewLogin } = await import("../oidc/issuer-client.ts");
  const options = { signal: shell.interrupted, wallMs: shell.wallMs };
  const renewed = await renewLogin(login, login.refreshToken, options);
  if (renewed === null) throw new Failure(over);
  const { token, refreshToken, expiresAtMs } = renewed;
  await save({ ...context, token, oidc: { ...login, refreshToken, expiresAtMs } });
  return token;
}
