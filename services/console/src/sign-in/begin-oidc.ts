import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { BeginOidcSignInResponseSchema, type ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { tokenAttempt } from "@rollcall/rpc";
import { browserCallOf } from "./browser-call.ts";
import type { SignInParts } from "./sign-in.ts";

/** Begin to sign in at an issuer. */
export function beginOidcSignIn({
  oidc,
  failures,
  settings,
}: SignInParts): MethodImpl<typeof ConsoleService.method.beginOidcSignIn> {
  return async ({ issuer }, context) => {
    const { origin, peer } = browserCallOf(context, settings.isNetworkTrusted);
    const attempt = tokenAttempt(peer, `issuer ${issuer}`);
    failures?.check(attempt);
    try {
      const { url, attempt: sealed } = await oidc.begin(issuer, origin, context.signal);
      return create(BeginOidcSignInResponseSchema, { authorizationUrl: url, attempt: sealed });
    } catch (error) {
      failures?.ended(attempt, error);
      throw error;
    }
  };
}
