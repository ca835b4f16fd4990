import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemErrorWords } from "@rollcall/process";
import type { ChosenContext } from "../contexts/context.ts";
import { type RenewedToken, renewedToken } from "../contexts/context-token.ts";
import { Failure, systemCodeOf, UsageError, unreadableFile } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { isLoopback } from "./addresses.ts";
import { ADMIN_TOKEN_FILE, type RunFile } from "./data-directory.ts";

/** The command-line flags that give the token. */
export interface TokenFlags {
  readonly token?: string;
  readonly tokenFile?: string;
}

/** Finds the access token for an address. */
export interface TokenSource {
  /**
   * The token to send to this address, or a function that returns it; null when there is none. Throws UsageError when
   * a named file cannot be read.
   */
  tokenFor(baseUrl: string): string | RenewedToken | null;
}

/** The token of a context, sent only to the addresses that the context names. */
export interface ContextToken {
  readonly chosen: ChosenContext;
  /** The addresses as base URLs. */
  readonly addresses: readonly string[];
}

type TokenShell = Pick<Shell, "env" | "cwd" | "wallMs" | "interrupted">;

/**
 * Find the access token. In order of precedence: --token, --token-file, the context that --context names,
 * ROLLCALL_TOKEN, ROLLCALL_TOKEN_FILE, the context in use, the admin-token file in the data directory. A context's
 * token is sent only to the addresses that the context names. The token of the admin-token file is sent only to this
 * machine and to the server that wrote the file, because any other server could misuse it.
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

/**
 * Throw UsageError for an empty value. An empty value usually comes from an unset script variable, and must not fall
 * back to a token with more rights.
 */
function refuseEmpty(option: string, value: string | undefined): void {
  if (value?.trim() === "") throw new UsageError(`--${option} is empty`);
}

function saidToken(token: string | undefined, file: string | undefined, cwd: string) {
  if (token) return checkedToken(token.trim(), "--token");
  return file ? readToken(resolve(cwd, file), true) : null;
}

function tokenOf(chosen: ChosenContext, shell: TokenShell): string | RenewedToken | null {
  const { token, tokenFile, oidc } = chosen.context;
  if (oidc !== null) return renewedToken(chosen, { token, login: oidc }, shell);
  return tokenFile === null ? token : readToken(tokenFile, true);
}

/** Throw UsageError for text that cannot be a token, such as several lines. HTTP cannot send it. */
function checkedToken(token: string, from: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new UsageError(`${from} is not an access token: it contains blanks or other invalid characters`);
}

/** @param isNamed whether the user named the file, which must then contain a token. */
function readToken(path: string, isNamed: boolean): string | null {
  let token: string;
  try {
    token = readFileSync(path, "utf8").trim();
  } catch (cause) {
    if (isNamed) throw unreadableFile(path, cause, "the access token in");
    if (systemCodeOf(cause) === "ENOENT") return null;
    throw new Failure(`cannot read the access token in ${path}: ${systemErrorWords(cause)}`, { cause });
  }
  if (isNamed && token === "") throw new UsageError(`no access token in ${path}`);
  return token === "" ? null : checkedToken(token, path);
}
