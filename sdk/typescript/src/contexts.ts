// The contexts of the command line, which `rollcall login` writes.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { ConfigurationError } from "./errors.ts";

/** The environment that determines the paths of this user's files. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  /** Null if the system has no user ids. */
  readonly uid: number | null;
}

/** A login through an OpenID Connect issuer, with the data to renew its token. */
export interface Login {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
  readonly refreshToken: string | null;
  readonly expiresAtMs: number;
}

/** One control plane and its credentials. */
export interface Context {
  readonly name: string;
  /** The addresses, each as HOST:PORT or URL, keyed by "server", "registry", "health", "admin" and "scheduler". */
  readonly addresses: Readonly<Record<string, string>>;
  readonly token: string | null;
  readonly tokenFile: string | null;
  readonly caFile: string | null;
  readonly login: Login | null;
}

type Plain = Readonly<Record<string, unknown>>;

/** The path of the file with the contexts. */
export function contextFile({ env, home }: Surroundings): string {
  // Ignore a relative path, as the XDG standard requires.
  const named = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : undefined;
  return join(named ?? join(home, ".config"), "rollcall", "config.yaml");
}

/**
 * Read the named context, or the current one if `wanted` is null. Returns null if no context is in use. Throws
 * ConfigurationError.
 */
export function readContext(path: string, wanted: string | null): Context | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw new ConfigurationError(`cannot read ${path}: ${codeOf(cause)}`, { cause });
    text = "";
  }
  const file = parsed(path, text);
  const name = wanted ?? textIn(file, "current_context");
  if (name === null) return null;
  const found = mapIn(file.contexts)[name];
  if (typeof found !== "object" || found === null) {
    throw new ConfigurationError(`there is no context ${JSON.stringify(name)} in ${path}`);
  }
  return contextOf(name, found as Plain);
}

/** Save a renewed token in its context, unless the context is gone. Rejects with ConfigurationError. */
export async function saveLogin(path: string, name: string, token: string, login: Login): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = parsed(path, await readFile(path, "utf8"));
    const contexts = mapIn(file.contexts);
    const context = mapIn(contexts[name]);
    if (context.oidc === undefined) return;
    const { refreshToken, expiresAtMs } = login;
    const oidc = {
      ...mapIn(context.oidc),
      ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
      expires_at: new Date(expiresAtMs).toISOString(),
    };
    const changed = { ...file, contexts: { ...contexts, [name]: { ...context, token, oidc } } };
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(`${PREFACE}${stringify(changed)}`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Rename the draft, so that a concurrent reader sees either the old file or the complete new file.
    await rename(draft, path);
  } catch (cause) {
    await rm(draft, { force: true });
    throw new ConfigurationError(`cannot write ${path}: ${codeOf(cause)}`, { cause });
  }
}

const PREFACE = "# Written by `rollcall login` and `rollcall context`. It holds tokens: keep it private.\n";

/** The system's error code, for example "ENOENT". */
export function codeOf(error: unknown): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  return String(code ?? message ?? error);
}

function contextOf(name: string, it: Plain): Context {
  const addresses = ["server", "registry", "health", "admin", "scheduler"].flatMap((key) => {
    const text = textIn(it, key);
    return text === null ? [] : [[key, text] as const];
  });
  return {
    name,
    addresses: Object.fromEntries(addresses),
    token: textIn(it, "token"),
    tokenFile: textIn(it, "token_file"),
    caFile: textIn(it, "ca_file"),
    login: it.oidc == null ? null : loginOf(name, mapIn(it.oidc)),
  };
}

function loginOf(name: string, it: Plain): Login {
  const [issuer, clientId] = [textIn(it, "issuer"), textIn(it, "client_id")];
  if (issuer === null || clientId === null) {
    throw new ConfigurationError(`oidc of context ${name} has no issuer or no client_id`);
  }
  return {
    issuer,
    clientId,
    audience: textIn(it, "audience") ?? "",
    refreshToken: textIn(it, "refresh_token"),
    // An unreadable time counts as expired, so that the token is renewed.
    expiresAtMs: Date.parse(String(it.expires_at ?? "")) || 0,
  };
}

function parsed(path: string, text: string): Plain {
  try {
    return mapIn(parse(text));
  } catch (cause) {
    throw new ConfigurationError(`cannot understand ${path}: ${codeOf(cause)}`, { cause });
  }
}

function mapIn(value: unknown): Plain {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Plain) : {};
}

function textIn(map: Plain, key: string): string | null {
  const value = map[key];
  return typeof value === "string" && value !== "" ? value : null;
}
