import { join, resolve } from "node:path";
import { Failure, systemCodeOf } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { isLoopback } from "./addresses.ts";
import { ADMIN_TOKEN_FILE, type RunFile, readIfThere } from "./data-directory.ts";

/** What the user said on the command line. */
export interface TokenFlags {
  readonly token?: string;
  readonly tokenFile?: string;
}

/** Finds the access token for an address. */
export interface TokenSource {
  /** The token to send there; null when there is none. Throws Failure when a named file cannot be read. */
  tokenFor(baseUrl: string): string | null;
}

/**
 * Find the access token. What is nearer wins: --token, --token-file, ROLLCALL_TOKEN, ROLLCALL_TOKEN_FILE, the admin-token file in the
 * data directory. The last is sent only to this machine and to the server that wrote it: nobody else has a use for it but a bad one.
 */
export function createTokenSource(
  flags: TokenFlags,
  { env, cwd }: Pick<Shell, "env" | "cwd">,
  dataDirectory: string,
  runFile: RunFile | null,
): TokenSource {
  const named = namedToken(flags, env, cwd);
  return {
    tokenFor: (baseUrl) => {
      if (named !== null) return named;
      const scheme = runFile?.tls === undefined ? "http" : "https";
      const isOwn = isLoopback(baseUrl) || baseUrl === `${scheme}://${runFile?.server}`;
      return isOwn ? readToken(join(dataDirectory, ADMIN_TOKEN_FILE), false) : null;
    },
  };
}

function namedToken(flags: TokenFlags, env: Shell["env"], cwd: string): string | null {
  const file = (path: string) => readToken(resolve(cwd, path), true);
  if (flags.token) return flags.token.trim();
  if (flags.tokenFile) return file(flags.tokenFile);
  if (env.ROLLCALL_TOKEN) return env.ROLLCALL_TOKEN.trim();
  if (env.ROLLCALL_TOKEN_FILE) return file(env.ROLLCALL_TOKEN_FILE);
  return null;
}

function readToken(path: string, required: boolean): string | null {
  let token: string | null;
  try {
    token = readIfThere(path);
  } catch (cause) {
    const why = systemCodeOf(cause) ?? String(cause);
    throw new Failure(`cannot read the access token in ${path}: ${why}`, { cause });
  }
  if (required && (token === null || token === "")) {
    throw new Failure(`cannot read the access token: there is none in ${path}`);
  }
  return token === "" ? null : token;
}
