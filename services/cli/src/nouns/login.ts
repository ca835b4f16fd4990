import { resolve } from "node:path";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AccessService, type WhoAmIResponse, WhoAmIResponseSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { groupsLeftOutText } from "@rollcall/domain";
import type { Command } from "commander";
import { plainActorNames } from "../client/actor-names.ts";
import { type Addresses, displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addNotes } from "../command.ts";
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
import type { GlobalOptions, Invocation, Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, writeAnswer } from "../output/format.ts";
import { fieldLines, printable } from "../output/text.ts";
import { formatTime } from "../output/units.ts";
import type { Shell } from "../shell.ts";
import { roleWord } from "./access.ts";

/** Define `login`. */
export function defineLogin(command: Command, shell: Shell): void {
  command
    .option("--oidc", "Get the token from the issuer that the server names, and confirm it in a browser")
    .option("--issuer <url>", "Issuer to use, if the server names several")
    .option("--ca-fingerprint <sha256>", "SHA-256 of the authority's certificate, which is fetched, compared and saved")
    .action(action(shell, login));
  addNotes(
    command,
    "The token, in order of precedence: --token; --token-file (saved as a path); ROLLCALL_TOKEN; " +
      "ROLLCALL_TOKEN_FILE; input at the terminal, or standard input: rollcall login --server HOST:PORT < token.",
    "With --oidc the login is renewed automatically, as long as the issuer allows it (OAuth 2.0 device flow, RFC " +
      "8628).",
    "The context: --context NAME; otherwise the current one if it has this address; otherwise the name of the host. " +
      "It becomes the current context.",
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

/**
 * Verify a token by asking the control plane whom it identifies, and save it in a context, which becomes the current
 * one.
 */
const login: Verb<LoginOptions> = async (invocation) => {
  const { shell } = invocation;
  const contexts = await readContexts(shell);
  // Look up the context without an error, because it may not exist yet.
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
  shell.out.write(`Logged in to ${server} as ${printable(nameOf(me))}, role ${roleWord(me.role)}: context ${name}\n`);
  shell.err.write(`saved in ${contextFilePath(shell)}\n`);
  const leftOut = groupsLeftOut(me);
  if (leftOut !== null) shell.err.write(`warning: ${leftOut}\n`);
};

/** With --ca-fingerprint, fetch the authority first, and then trust it as if the user had given it with --ca-file. */
async function withAuthority<O extends GlobalOptions & LoginOptions>(shell: Shell, options: O): Promise<O> {
  if (options.caFingerprint === undefined) return options;
  if (options.caFile) throw new UsageError("--ca-file and --ca-fingerprint cannot be combined");
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
  // Save the path instead of the content, so that a file that is replaced needs no new login.
  if (options.tokenFile) return { ...none, tokenFile: resolve(shell.cwd, options.tokenFile) };
  const { ROLLCALL_TOKEN: token, ROLLCALL_TOKEN_FILE: file } = shell.env;
  if (token) return { ...none, token: token.trim() };
  if (file) return { ...none, tokenFile: resolve(shell.cwd, file) };
  const typed = await readTyped(shell);
  if (typed === "") throw new UsageError("no access token given: pass --token-file, or use --oidc");
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

/**
 * The name of the context to save: --context, or the current context if it has the same addresses, or the host's name.
 */
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
  throw new Failure("cannot name a context after the server's address: choose a name with --context NAME");
}

/** Remove the brackets of an IPv6 address. Write "::1" as "0::1", because names start with a letter or a digit. */
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
    throw new Failure("there is no context to log out of\nhint: `rollcall context list` lists all contexts");
  }
  const { name } = chosen.context;
  if (options.revoke) {
    const { token: _token, tokenFile: _file, ...rest } = options;
    // Mark the context as named, so that its own token is revoked and not one from the environment.
    const own = { ...rest, chosenContext: () => ({ ...chosen, isNamed: true }) };
    const control = reachControlPlane(shell, own);
    const client = control.client("admin", AccessService);
    const { credential } = await control.attempt("admin", "read your identity", () => client.whoAmI({}));
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
  const me = await control.attempt("admin", "read your identity", () => client.whoAmI({}));
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

/** The caller's name: a person's subject, or the name of an access token. */
function nameOf({ actor, credential }: WhoAmIResponse): string {
  const name = credential.case === "accessToken" ? credential.value.name : "";
  return name === "" ? plainActorNames(actor) : name;
}

function describe(me: WhoAmIResponse) {
  const { actor, role, expireTime, credential } = me;
  const until = expireTime === undefined ? "never" : formatTime(timestampMs(expireTime));
  return [
    ["name", nameOf(me)],
    ["role", roleWord(role)],
    ["expires", until],
    ...(credential.case === "person" ? ([["issuer", credential.value.issuer]] as const) : []),
    ["actor", actor],
  ] as const;
}

function groupsLeftOut({ credential, role }: WhoAmIResponse): string | null {
  const claim = credential.case === "person" ? credential.value.groupsLeftOut : "";
  return groupsLeftOutText(printable(claim), roleWord(role));
}
