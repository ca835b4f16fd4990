import { resolve } from "node:path";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AccessService, type WhoAmIResponse, WhoAmIResponseSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import type { Command } from "commander";
import { type Addresses, displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes, type GlobalOptions, type Invocation, type Verb } from "../command.ts";
import {
  type Context,
  type Contexts,
  contextNamed,
  isContextName,
  newContext,
  withContext,
} from "../contexts/context.ts";
import { changeContexts, contextFilePath, readContexts } from "../contexts/context-file.ts";
import { Failure, UsageError } from "../failure.ts";
import { ANSWER_FORMATS, outputFormat, writeAnswer } from "../output/format.ts";
import { fieldLines, printable } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { roleWord } from "./access.ts";

/** Define `login`. */
export function defineLogin(command: Command, shell: Shell): void {
  command
    .option("--oidc", "Get the token from the issuer that the server names; a browser confirms it")
    .option("--issuer <url>", "Issuer to use, where the server names several")
    .option("--ca-fingerprint <sha256>", "SHA-256 of the authority's certificate: it is fetched, compared and kept")
    .action(action(shell, login));
  addNotes(
    command,
    "The token: --token; --token-file, of which the path is kept; ROLLCALL_TOKEN; ROLLCALL_TOKEN_FILE; what is " +
      "typed at the terminal, or else standard input: rollcall login --server HOST:PORT < token.",
    "With --oidc the login is renewed automatically, as long as the issuer agrees (OAuth 2.0 device flow, RFC 8628).",
    "The context: --context NAME; else the current one if it has this address; else the name of the host. It " +
      "becomes the current one.",
  );
}

/** Define `logout`. */
export function defineLogout(command: Command, shell: Shell): void {
  command.option("--revoke", "Revoke the access token as well").action(action(shell, logout));
}

/** Define `whoami`. */
export function defineWhoami(command: Command, shell: Shell): void {
  addNotes(command, "-o json|yaml prints a rollcall.admin.v1.WhoAmIResponse in proto JSON.");
  command.action(action(shell, whoami));
}

interface LoginOptions {
  readonly oidc?: boolean;
  readonly issuer?: string;
  readonly caFingerprint?: string;
}

/** The credentials of a context. */
type Entry = Pick<Context, "token" | "tokenFile" | "oidc">;

/** Check a token by asking the control plane whose it is, and keep it in a context, which becomes the current one. */
const login: Verb<LoginOptions> = async (invocation) => {
  const { shell } = invocation;
  const contexts = await readContexts(shell);
  // The named one may not exist yet.
  const known = contextNamed(contexts, invocation.options.context ?? contexts.current ?? "");
  const chosenContext = () => (known === null ? null : { context: known, isNamed: false, save: async () => {} });
  const options = await withAuthority(shell, { ...invocation.options, chosenContext });
  const { addresses } = reachControlPlane(shell, options);
  const name = nameFor(options, contexts, addresses);
  const entry = options.oidc ? await logInByDevice({ ...invocation, options }) : await findToken(shell, options);
  const me = await checkEntry(shell, options, entry);
  const { caFile } = options;
  const kept = caFile ? resolve(shell.cwd, caFile) : (known?.caFile ?? null);
  const place = { ...placeOf(addresses), caFile: kept, insecure: known?.insecure ?? false };
  await changeContexts(shell, (now) => ({
    ...withContext(now, newContext({ name, ...place, ...entry })),
    current: name,
  }));
  const server = displayAddress(addresses.admin);
  shell.out.write(`Logged in to ${server} as ${printable(me.actor)}, role ${roleWord(me.role)}: context ${name}\n`);
  shell.err.write(`saved in ${contextFilePath(shell)}\n`);
  const leftOut = groupsLeftOut(me);
  if (leftOut !== null) shell.err.write(`warning: ${leftOut}\n`);
};

/** With --ca-fingerprint the authority is fetched before anything else, and then trusted like a file of the user's. */
async function withAuthority<O extends GlobalOptions & LoginOptions>(shell: Shell, options: O): Promise<O> {
  if (options.caFingerprint === undefined) return options;
  if (options.caFile) throw new UsageError("--ca-file and --ca-fingerprint name the same: give one of them");
  const { fetchContextAuthority } = await import("../contexts/context-authority.ts");
  return { ...options, caFile: await fetchContextAuthority(shell, options, options.caFingerprint) };
}

async function checkEntry(shell: Shell, options: GlobalOptions, entry: Entry) {
  const { token: _token, tokenFile: _tokenFile, ...rest } = options;
  const said = entry.tokenFile === null ? { token: entry.token ?? "" } : { tokenFile: entry.tokenFile };
  const control = reachControlPlane(shell, { ...rest, ...said });
  const client = control.client("admin", AccessService);
  return control.attempt("admin", "log in", () => client.whoAmI({}));
}

async function findToken(shell: Shell, options: GlobalOptions): Promise<Entry> {
  const none = { token: null, tokenFile: null, oidc: null };
  if (options.token) return { ...none, token: options.token.trim() };
  // Its path, not its content: a file that is replaced needs no new login.
  if (options.tokenFile) return { ...none, tokenFile: resolve(shell.cwd, options.tokenFile) };
  const { ROLLCALL_TOKEN: token, ROLLCALL_TOKEN_FILE: file } = shell.env;
  if (token) return { ...none, token: token.trim() };
  if (file) return { ...none, tokenFile: resolve(shell.cwd, file) };
  const typed = await readTyped(shell);
  if (typed === "") throw new UsageError("no access token was given: --token-file names a file, --oidc asks an issuer");
  return { ...none, token: typed };
}

async function readTyped(shell: Shell): Promise<string> {
  if (shell.askSecret != null) return (await shell.askSecret("Access token: ")).trim();
  return (await shell.readInput?.())?.trim() ?? "";
}

async function logInByDevice(invocation: Invocation<LoginOptions>): Promise<Entry> {
  const { deviceLogin } = await import("../oidc/device-login.ts");
  const { token, oidc } = await deviceLogin(invocation);
  return { token, tokenFile: null, oidc };
}

/** --context; else the current one where it leads to the same place; else the host's name. */
function nameFor({ context }: GlobalOptions, contexts: Contexts, addresses: Addresses): string {
  if (context !== undefined) {
    if (isContextName(context)) return context;
    throw new UsageError(
      `cannot use '${context}' as context value, should be 1 to 63 letters, digits and any of ._:@-`,
    );
  }
  const current = contextNamed(contexts, contexts.current ?? "");
  const here = placeOf(addresses);
  if (current !== null && current.server === here.server && current.admin === here.admin) {
    return current.name;
  }
  const { host, hostname } = new URL(addresses.admin);
  const name = plainName(contextNamed(contexts, plainName(hostname)) === null ? hostname : host);
  if (isContextName(name)) return name;
  throw new Failure("the server's address makes no name: choose one with --context NAME");
}

/** An address of IPv6 without brackets; "::1" as "0::1", since names begin with a letter or a digit. */
function plainName(host: string): string {
  return host.replace(/[[\]]/g, "").replace(/^:/, "0:");
}

function placeOf({ registry, health, admin, scheduler }: Addresses) {
  const isOne = [health, admin, scheduler].every((it) => it === registry);
  return isOne
    ? { server: admin, registry: null, health: null, admin: null, scheduler: null }
    : { server: null, registry, health, admin, scheduler };
}

interface LogoutOptions {
  readonly revoke?: boolean;
}

/** Remove the token of a context, and keep its addresses. */
const logout: Verb<LogoutOptions> = async ({ shell, options }) => {
  const chosen = options.chosenContext?.() ?? null;
  if (chosen === null) {
    throw new Failure("there is no context to log out of\nhint: `rollcall context list` shows them all");
  }
  const { name } = chosen.context;
  if (options.revoke) {
    const { token: _token, tokenFile: _file, ...rest } = options;
    // Named, so that the context's own token is revoked, and no other.
    const own = { ...rest, chosenContext: () => ({ ...chosen, isNamed: true }) };
    const control = reachControlPlane(shell, own);
    const client = control.client("admin", AccessService);
    const { credential } = await control.attempt("admin", "ask who I am", () => client.whoAmI({}));
    if (credential.case !== "accessToken") {
      throw new Failure("only an access token can be revoked here; end an issuer's session at the issuer");
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

const whoami: Verb = async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AccessService);
  const me = await control.attempt("admin", "ask who I am", () => client.whoAmI({}));
  const fields = [
    ...describe(me),
    ["cluster", me.clusterId],
    ["server", displayAddress(control.addresses.admin)],
    ["context", options.chosenContext?.()?.context.name ?? "-"],
  ] as const;
  await writeAnswer(shell, format, [WhoAmIResponseSchema, me], fieldLines(fields, " "));
  const leftOut = groupsLeftOut(me);
  if (leftOut !== null) shell.err.write(`warning: ${leftOut}\n`);
};

function describe({ actor, role, expireTime, credential }: WhoAmIResponse) {
  const until = expireTime === undefined ? "never" : formatTime(timestampMs(expireTime));
  return [
    ["actor", actor],
    ["role", roleWord(role)],
    ["expires", until],
    credential.case === "person"
      ? (["issuer", credential.value.issuer] as const)
      : (["name", credential.value?.name ?? "-"] as const),
  ] as const;
}

/** Why roles by groups do not apply to a person whose issuer left the groups out of the token; null where they do. */
function groupsLeftOut({ credential, role }: WhoAmIResponse): string | null {
  const claim = credential.case === "person" ? credential.value.groupsLeftOut : "";
  if (claim === "") return null;
  return (
    `the issuer left your groups out of the token because there are too many (${printable(claim)}), so no group ` +
    `gives you a role, and you have the role ${roleWord(role)}; ask your administrator to let the issuer write only ` +
    "groups that are assigned to the application"
  );
}
