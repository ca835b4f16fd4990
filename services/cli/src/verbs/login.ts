import { resolve } from "node:path";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { roleWord } from "../access/access-words.ts";
import { type Addresses, displayAddress } from "../client/addresses.ts";
import { reachControlPlane } from "../client/control-plane.ts";
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
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** What `login` takes. */
export interface LoginOptions {
  readonly oidc?: boolean;
  readonly issuer?: string;
}

/** How somebody gets in: what of a context says so, and the token to try it with. */
type Entry = Pick<Context, "token" | "tokenFile" | "oidc">;

/**
 * `login`: checks a token by asking the control plane who it is, and keeps it in a context, which becomes the current
 * one.
 */
export const login: Verb<LoginOptions> = async (invocation) => {
  const { shell } = invocation;
  const contexts = await readContexts(shell);
  // The one that is named need not be there yet.
  const known = contextNamed(contexts, invocation.options.context ?? contexts.current ?? "");
  const chosenContext = () => (known === null ? null : { context: known, isNamed: false, save: async () => {} });
  const options = { ...invocation.options, chosenContext };
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
  shell.err.write(`kept in ${contextFilePath(shell)}\n`);
};

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
  // Its path, not its content: whoever replaces the file need not log in again.
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
  const name = contextNamed(contexts, hostname) === null ? hostname : host;
  if (isContextName(name)) return name;
  throw new Failure("the server's address makes no name: choose one with --context NAME");
}

function placeOf({ registry, health, admin }: Addresses) {
  const isOne = registry === health && registry === admin;
  return isOne
    ? { server: admin, registry: null, health: null, admin: null }
    : { server: null, registry, health, admin };
}
