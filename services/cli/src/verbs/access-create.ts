import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  AccessService,
  type CreateAccessTokenResponse,
  CreateAccessTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { roleOf, roleWord, timeWord } from "../access/access-words.ts";
import { ROLE_WORDS } from "../choices.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseDurationMs, pickWord } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { printable } from "../output/text.ts";

/** What `access create` takes. */
export interface AccessCreateOptions {
  readonly role: string;
  readonly ttl?: string;
  readonly requestId?: string;
}

/** `access create`: the token on standard output, and what it is on standard error. */
export const accessCreate: Verb<AccessCreateOptions> = async ({ shell, args, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const { ttl, requestId = "" } = options;
  const request = {
    name: args[0] ?? "",
    role: roleOf(pickWord("role", options.role, ROLE_WORDS)),
    requestId,
    ...(ttl === undefined ? {} : { ttl: durationFromMs(parseDurationMs("ttl", ttl)) }),
  };
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const answer = await control.attempt("admin", "make an access token", () => client.createAccessToken(request));
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(CreateAccessTokenResponseSchema, answer)));
    return;
  }
  if (answer.text !== "") shell.out.write(`${answer.text}\n`);
  shell.err.write(hint(answer));
};

function hint({ accessToken: token, text }: CreateAccessTokenResponse): string {
  const id = token?.id ?? "";
  if (text === "") {
    return `Access token ${id} was made by the first request of this id, and its text cannot be shown again; \`rollcall access revoke ${id}\` and make another.\n`;
  }
  const until = timeWord(token?.expireTime, "");
  const good = until === "" ? "until it is revoked" : `until ${until}`;
  return `Access token ${id} (${printable(token?.name ?? "")}) has the role ${roleWord(token?.role ?? 0)} and is good ${good}. It is shown this once.\n`;
}
