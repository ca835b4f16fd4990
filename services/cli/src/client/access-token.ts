import { join, resolve } from "node:path";
import { systemErrorWords } from "@rollcall/process";
import type { ChosenContext } from "../contexts/context.ts";
import { type RenewedToken, renewedToken } from "../contexts/context-token.ts";
import { Failure, UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { isLoopback } from "./addresses.ts";
import { ADMIN_TOKEN_FILE, type RunFile, readIfThere } from "./data-directory.ts";

/** The flags of the command line. */
export interface TokenFlags {
  readonly token?: string;
  readonly tokenFile?: string;
}

/** Finds the access token for an address. */
export interface TokenSource {
  /**
   * The token to send there, or how to get it; null when there is none. Throws UsageError when a named file cannot be
   * read.
   */
  tokenFor(baseUrl: string): string | RenewedToken | null;
}

/** The token of a context, for the addresses that the context names alone. */
export interface ContextToken {
  readonly chosen: ChosenContext;
  /** Base URLs. */
  readonly addresses: readonly string[];
}

type TokenShell = Pick<Shell, "env" | "cwd" | "wallMs" | "interrupted">;

/**
 * Find the access token. What is nearer wins: --token, --token-file, the context that --context names, ROLLCALL_TOKEN,
 * ROLLCALL_TOKEN_FILE, the context in use otherwise, the admin-token file in the data directory. A context's token
 * is sent only to the addresses that it names, the last only to this machine and to the server that wrote it: any
 * other server could only misuse them.
 */
export function createTokenSource(
  flags: TokenFlags,
  shell: TokenShell,
  dataDirectory: string,
  runFile: RunFile | null,
  context: ContextToken | null = null,
): TokenSource {
  const { env, cwd } = shell;
  refuseEmpty("token", flags.token);
  refuseEmpty("token-file", flags.tokenFile);
  const said = saidToken(flags.token, flags.tokenFile, cwd);
  const isNamed = context?.chosen.isNamed === true;
  return {
    tokenFor: (baseUrl) => {
      if (said !== null) return said;
      const isContexts = context?.addresses.includes(baseUrl) === true;
      const inContext = isContexts ? tokenOf(context.chosen, shell) : null;
      if (isNamed && inContext !== null) return inContext;
      const inEnvironment = saidToken(env.ROLLCALL_TOKEN, env.ROLLCALL_TOKEN_FILE, cwd);
      if (inEnvironment !== null) return inEnvironment;
      if (inContext !== null) return inContext;
      const scheme = runFile?.tls === undefined ? "http" : "https";
      const isOwn = isLoopback(baseUrl) || baseUrl === `${scheme}://${runFile?.server}`;
      return isOwn ? readToken(join(dataDirectory, ADMIN_TOKEN_FILE), false) : null;
    },
  };
}

/** A script's variable that was not set must not be replaced by a token that may do more. */
function refuseEmpty(option: string, value: string | undefined): void {
  if (value?.trim() === "") throw new UsageError(`--${option} is empty`);
}

function saidToken(token: string | undefined, file: string | undefined, cwd: string) {
  if (token) return token.trim();
  return file ? readToken(resolve(cwd, file), true) : null;
}

function tokenOf(chosen: ChosenContext, shell: TokenShell): string | RenewedToken | null {
  const { token, tokenFile, oidc } = chosen.context;
  if (oidc !== null) return renewedToken(chosen, { token, login: oidc }, shell);
  return tokenFile === null ? token : readToken(tokenFile, true);
}

/** @param isNamed whether the user named the file, which then has to hold a token. */
function readToken(path: string, isNamed: boolean): string | null {
  let token: string | null;
  try {
    token = readIfThere(path);
  } catch (cause) {
    if (isNamed) throw unreadableFile(path, cause, "the access token in");
    throw new Failure(`cannot read the access token in ${path}: ${systemErrorWords(cause)}`, { cause });
  }
  if (isNamed && (token === null || token === "")) {
    throw new UsageError(`cannot read the access token: there is none in ${path}`);
  }
  return token === "" ? null : token;
}
