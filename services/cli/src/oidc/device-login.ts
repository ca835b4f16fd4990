import { AccessService, type LoginIssuer } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { OidcLogin } from "../contexts/context.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Invocation } from "../invocation.ts";
import { printable } from "../output/text.ts";
import { beginLogin } from "./issuer-client.ts";

/** The result of a login. */
export interface DeviceLogin {
  readonly token: string;
  readonly oidc: OidcLogin;
}

/**
 * Log in at the issuer that the control plane names, by the device flow: a person confirms the login in a browser on
 * any machine. Throws Failure when there is no issuer, or when the issuer refuses.
 */
export async function deviceLogin({ shell, options }: Invocation<{ readonly issuer?: string }>): Promise<DeviceLogin> {
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const { issuers } = await control.attempt("admin", "read the login options", () => client.getLoginOptions({}));
  const at = displayAddress(control.addresses.admin);
  const chosen = chooseIssuer(issuers, options.issuer, at);
  const { interrupted: signal, wallMs } = shell;
  const pending = await beginLogin(chosen, { signal, wallMs });
  const page = printable(pending.completeUri ?? pending.verificationUri);
  const code = printable(pending.userCode);
  shell.err.write(
    `Open this page in a browser, on any machine:\n\n  ${page}\n\nand confirm the code ${code}. Waiting ...\n`,
  );
  const { token, refreshToken, expiresAtMs } = await pending.finish();
  const { issuer, clientId, audience } = chosen;
  return { token, oidc: { issuer, clientId, audience, refreshToken, expiresAtMs } };
}

function chooseIssuer(issuers: readonly LoginIssuer[], wanted: string | undefined, server: string): LoginIssuer {
  const [first, ...others] = issuers;
  if (first === undefined) {
    throw new Failure(
      `the control plane at ${server} does not offer login through an OpenID Connect issuer\nhint: set OIDC.Issuer ` +
        "and OIDC.ClientID " +
        `there, or log in with an access token: \`rollcall login --token-file\``,
    );
  }
  if (wanted === undefined && others.length === 0) return first;
  const found = issuers.find(({ issuer }) => issuer === wanted);
  if (found !== undefined) return found;
  const names = issuers.map(({ issuer }) => printable(issuer)).join(" ");
  throw new UsageError(`choose an issuer with --issuer, one of: ${names}`);
}
