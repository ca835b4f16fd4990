import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CreateJoinTokenResponse,
  CreateJoinTokenResponseSchema,
  JoinTokenService,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { parseCount, parseDurationMs, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";
import { timeText } from "../tokens/token-words.ts";

/** What `token create` takes. */
export interface TokenCreateOptions {
  readonly description?: string;
  readonly uses?: string;
  readonly ttl?: string;
  readonly namePattern?: string;
  readonly label: readonly string[];
  readonly group?: string;
  readonly preauthorized?: boolean;
  readonly ephemeral?: boolean;
  readonly requestId?: string;
}

/** `token create`: the token on standard output, and how to use it on standard error. */
export const tokenCreate: Verb<TokenCreateOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const request = {
    description: options.description ?? "",
    useLimit: parseUses(options.uses),
    lifetime: parseTtl(options.ttl),
    nodeNamePattern: options.namePattern ?? "",
    labels: parseLabels(options.label),
    group: options.group ?? "",
    preauthorized: options.preauthorized ?? false,
    ephemeral: options.ephemeral ?? false,
    requestId: options.requestId ?? "",
  };
  const control = reachControlPlane(shell, options);
  const tokens = control.client("admin", JoinTokenService);
  const answer = await control.attempt("admin", "make a join token", () => tokens.createJoinToken(request));
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(CreateJoinTokenResponseSchema, answer)));
    return;
  }
  if (answer.text !== "") shell.out.write(`${answer.text}\n`);
  const server = displayAddress(control.addresses.registry);
  // Where nobody sits at the terminal, standard error is often a log.
  const shown = shell.out.isTerminal ? answer.text : "TOKEN";
  shell.err.write(hint(answer, `--server ${server} --join-token ${shown}`));
};

function hint({ text, token }: CreateJoinTokenResponse, flags: string): string {
  const id = token?.id ?? "";
  if (text === "") {
    return `Join token ${id} was made by the first request of this id, and its text cannot be shown again; \`rollcall token revoke ${id}\` and make another.\n`;
  }
  const limit = token?.maxUses ?? 0;
  const machines = limit === 0 ? "any number of machines" : limit === 1 ? "one machine" : `${limit} machines`;
  const until = token?.expireTime === undefined ? "until it is revoked" : `until ${timeText(token.expireTime)}`;
  return `
Join token ${id} lets in ${machines} ${until}. It is shown this once. On the machine:

  rollcall agent ${flags}

or put it into a file, and name that with --join-token-file or ROLLCALL_JOIN_TOKEN_FILE: others see no file in the list of processes.
`;
}

function parseUses(text: string | undefined) {
  if (text === undefined) return { case: undefined };
  if (text.toLowerCase() === "unlimited") return { case: "unlimitedUses", value: true } as const;
  return { case: "maxUses", value: parseCount("uses", text, 1) } as const;
}

function parseTtl(text: string | undefined) {
  if (text === undefined) return { case: undefined };
  if (text.toLowerCase() === "never") return { case: "neverExpires", value: true } as const;
  return { case: "ttl", value: durationFromMs(parseDurationMs("ttl", text)) } as const;
}

function parseLabels(pairs: readonly string[]): Record<string, string> {
  const labels = pairs.map((pair): [string, string] => {
    const at = pair.indexOf("=");
    if (at > 0) return [pair.slice(0, at), pair.slice(at + 1)];
    throw new UsageError(`cannot use '${pair}' as label value, should be KEY=VALUE`);
  });
  return Object.fromEntries(labels);
}
