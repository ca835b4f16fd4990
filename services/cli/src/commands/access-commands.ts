import type { Command } from "commander";
import type { Shell } from "../shell.ts";
import type { AccessCreateOptions } from "../verbs/access-create.ts";
import type { AccessRevokeOptions } from "../verbs/access-revoke.ts";
import type { LoginOptions } from "../verbs/login.ts";
import type { LogoutOptions } from "../verbs/logout.ts";
import { lazily } from "./lazily.ts";

/** Add `login`, `logout`, `whoami` and `access` with its verbs. */
export function addAccessCommands(program: Command, shell: Shell): void {
  addLogin(program, shell);
  program
    .command("whoami")
    .description("show who you are to the control plane, and what you may do")
    .addHelpText("after", "\n--output json|yaml prints a rollcall.admin.v1.WhoAmIResponse in proto JSON.")
    .action(lazily(shell, async () => (await import("../verbs/whoami.ts")).whoami));
  const access = program.command("access").description("make, see and revoke the tokens of people and programs");
  addCreate(access, shell);
  access
    .command("list")
    .description("list access tokens, the oldest first")
    .option("--all", "those that have expired or were revoked, too")
    .option("--wide", "do not cut long values short")
    .option("--hide-header", "leave the headings out")
    .addHelpText(
      "after",
      "\n--output json|yaml prints a rollcall.admin.v1.ListAccessTokensResponse in proto JSON; --output csv prints RFC 4180.",
    )
    .action(lazily(shell, async () => (await import("../verbs/access-list.ts")).accessList));
  access
    .command("revoke")
    .description("end an access token: within a second nobody gets in with it")
    .argument("<access-id>", "id of the access token, as `access list` shows it")
    .option("-m, --message <reason>", "why, for people")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      "\nAny token may revoke itself; to revoke another one takes the role admin.\n--output json|yaml prints a rollcall.admin.v1.RevokeAccessTokenResponse in proto JSON.",
    )
    .action(lazily<AccessRevokeOptions>(shell, async () => (await import("../verbs/access-revoke.ts")).accessRevoke));
}

function addCreate(access: Command, shell: Shell): void {
  access
    .command("create")
    .description("make an access token, and print it this once")
    .argument("<name>", "what it is for: ci, alice's laptop")
    .requiredOption("--role <role>", "viewer, operator or admin")
    .option("--ttl <duration>", "how long it is good for, such as 8h or 30d (default: for ever)")
    .option("--request-id <id>", "the same id twice has one effect and the same answer")
    .addHelpText(
      "after",
      `
The token alone goes to standard output, and what it is to standard error: rollcall access create ci --role viewer > token.
--output json|yaml prints a rollcall.admin.v1.CreateAccessTokenResponse in proto JSON.`,
    )
    .action(lazily<AccessCreateOptions>(shell, async () => (await import("../verbs/access-create.ts")).accessCreate));
}

function addLogin(program: Command, shell: Shell): void {
  program
    .command("login")
    .description("check a token, and keep it with the server's address in a context")
    .option("--oidc", "get the token from the issuer that the server names, confirmed in a browser")
    .option("--issuer <url>", "which issuer, where the server names several")
    .addHelpText(
      "after",
      `
The token: --token; --token-file, of which the path is kept; ROLLCALL_TOKEN; ROLLCALL_TOKEN_FILE; what is typed at the terminal, or
else standard input: rollcall login --server HOST:PORT < token.
With --oidc the login is renewed by itself, for as long as the issuer agrees (OAuth 2.0 device flow, RFC 8628).
The context: --context NAME; else the current one if it has this address; else the name of the host. It becomes the current one.`,
    )
    .action(lazily<LoginOptions>(shell, async () => (await import("../verbs/login.ts")).login));
  program
    .command("logout")
    .description("forget the token of a context; its addresses stay")
    .option("--revoke", "revoke the access token as well")
    .action(lazily<LogoutOptions>(shell, async () => (await import("../verbs/logout.ts")).logout));
}
