import { JoinTokenSchema, JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { tokenIdOf } from "../tokens/token-words.ts";

/** What `token revoke` takes. */
export interface TokenRevokeOptions {
  readonly message?: string;
  readonly requestId?: string;
}

/** `token revoke`: it prints Ok, or with --output the join token as it is now. */
export const tokenRevoke: Verb<TokenRevokeOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const id = tokenIdOf(args[0] ?? "");
  const { message: reason = "", requestId = "" } = options;
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", JoinTokenService);
  const { token } = await control.attempt("admin", `revoke join token ${id}`, () =>
    client.revokeJoinToken({ id, reason, requestId }),
  );
  if (format === "table" || token === undefined) {
    shell.out.write("Ok\n");
    return;
  }
  const { formatStructured, toPlain } = await import("../output/structured.ts");
  shell.out.write(await formatStructured(format, toPlain(JoinTokenSchema, token)));
};
