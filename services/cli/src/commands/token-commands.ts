import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { TokenCreateOptions } from "../verbs/token-create.ts";
import type { TokenRevokeOptions } from "../verbs/token-revoke.ts";
import { lazily } from "./lazily.ts";

const TOKEN = ["<token-id>", "id of the join token, as `token list` shows it"] as const;

/** Add `token` and its verbs. */
export function addTokenCommands(program: Command, shell: Shell): void {
  const token = program.command("token").description("make, see and revoke the tokens with which machines join");
  addCreate(token, shell);
  token
    .command("list")
    .description("list join tokens, the newest first")
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      "\n--output json|yaml prints a rollcall.admin.v1.ListJoinTokensResponse in proto JSON; --output csv prints RFC 4180.",
    )
    .action(lazily(shell, async () => (await import("../verbs/token-list.ts")).tokenList));
  token
    .command("show")
    .description("show one join token, and the machines that it let in last")
    .argument(...TOKEN)
    .addHelpText("after", "\n--output json|yaml prints a rollcall.admin.v1.GetJoinTokenResponse in proto JSON.")
    .action(lazily(shell, async () => (await import("../verbs/token-show.ts")).tokenShow));
  token
    .command("revoke")
    .description("end a join token: nobody joins with it from now on; nodes that did stay")
    .argument(...TOKEN)
    .option("-m, --message <reason>", "why, for people")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText("after", "\n--output json|yaml prints the rollcall.admin.v1.JoinToken as it is now in proto JSON.")
    .action(lazily<TokenRevokeOptions>(shell, async () => (await import("../verbs/token-revoke.ts")).tokenRevoke));
}

function addCreate(token: Command, shell: Shell): void {
  token
    .command("create")
    .description("make a join token, and print it this once")
    .option("--description <text>", "what it is for")
    .option("--uses <count>", 'how many machines it lets in, or "unlimited" (default: 1)')
    .option("--ttl <duration>", 'how long it lets machines in, such as 1h or 7d, or "never" (default: 24h)')
    .option(
      "--name-pattern <pattern>",
      'only nodes with such a name: "*" stands for any characters, "?" for one; quote it: \'gpu-*\'',
    )
    .option(
      "--label <key=value>",
      "a label that it grants, which wins over the node's own; may be given several times",
      collect,
      [],
    )
    .option("--group <name>", "the group that it puts nodes in: the label rollcall.io/group")
    .option("--preauthorized", "approve whoever joins with it at once, under manual approval too")
    .option("--ephemeral", "remove nodes that joined with it when they have left")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      `
The token alone goes to standard output, and how to use it to standard error: TOKEN=$(rollcall token create).
--output json|yaml prints a rollcall.admin.v1.CreateJoinTokenResponse in proto JSON: {"token": {...}, "text": "rcj_..."}.`,
    )
    .action(lazily<TokenCreateOptions>(shell, async () => (await import("../verbs/token-create.ts")).tokenCreate));
}

function collect(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value];
}
