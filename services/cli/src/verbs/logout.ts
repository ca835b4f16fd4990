import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { contextNamed, withContext } from "../contexts/context.ts";
import { changeContexts } from "../contexts/context-file.ts";
import { Failure } from "../failure.ts";
import type { Verb } from "../invocation.ts";

/** What `logout` takes. */
export interface LogoutOptions {
  readonly revoke?: boolean;
}

/** `logout`: the context forgets its token, and keeps its addresses. */
export const logout: Verb<LogoutOptions> = async ({ shell, options }) => {
  const chosen = options.chosenContext?.() ?? null;
  if (chosen === null) {
    throw new Failure("there is no context to log out of\nhint: `rollcall context list` shows those that there are");
  }
  const { name } = chosen.context;
  if (options.revoke) {
    const { token: _token, tokenFile: _file, ...rest } = options;
    // Named, so that it is the context's own token that is ended, and no other's.
    const own = { ...rest, chosenContext: () => ({ ...chosen, isNamed: true }) };
    const control = reachControlPlane(shell, own);
    const client = control.client("admin", AccessService);
    const { credential } = await control.attempt("admin", "ask who I am", () => client.whoAmI({}));
    if (credential.case !== "accessToken") {
      throw new Failure("only an access token can be revoked here: end an issuer's session at the issuer");
    }
    const { id } = credential.value;
    await control.attempt("admin", `revoke access token ${id}`, () =>
      client.revokeAccessToken({ id, reason: "logout" }),
    );
  }
  await changeContexts(shell, (contexts) => {
    const context = contextNamed(contexts, name);
    const nothing = { token: null, tokenFile: null, oidc: null };
    return context === null ? contexts : withContext(contexts, { ...context, ...nothing });
  });
  shell.out.write(`Logged out of context ${name}\n`);
};
