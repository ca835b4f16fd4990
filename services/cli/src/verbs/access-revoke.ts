import { AccessService, RevokeAccessTokenResponseSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { accessTokenIdOf } from "../access/access-words.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What `access revoke` takes. */
export interface AccessRevokeOptions {
  readonly message?: string;
  readonly requestId?: string;
}

const NOBODY_LEFT =
  "warning: no access token of role admin is left\nhint: people who log in by an issuer with that role can make one; else restart admin with a new Admin.Token or Admin.TokenFile, or `rollcall up` without the admin-token file in its data directory\n";

/** `access revoke`: it prints Ok, or with --output a rollcall.admin.v1.RevokeAccessTokenResponse. */
export const accessRevoke: Verb<AccessRevokeOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const id = accessTokenIdOf(args[0] ?? "");
  const { message: reason = "", requestId = "" } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const answer = await control.attempt("admin", `revoke access token ${id}`, () =>
    client.revokeAccessToken({ id, reason, requestId }),
  );
  if (answer.adminTokensLeft === 0) shell.err.write(NOBODY_LEFT);
  if (format === "table") {
    shell.out.write("Ok\n");
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  const plain = toPlain(RevokeAccessTokenResponseSchema, answer);
  shell.out.write(await formatStructured(format, plain));
};
