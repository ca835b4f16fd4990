import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeDirectory, replaceFile, systemErrorWords } from "@rollcall/process";
import { Failure, systemCodeOf } from "../failure.ts";
import type { Shell } from "../shell.ts";
import { type Context, type Contexts, isContextName, newContext, type OidcLogin } from "./context.ts";

/** The parts of the shell that the file's path depends on. */
export type HomeAndEnvironment = Pick<Shell, "env" | "home">;

const NONE: Contexts = { current: null, contexts: [] };

/** Where contexts are kept: rollcall/config.yaml in XDG_CONFIG_HOME, else in ~/.config. */
export function contextFilePath({ env, home }: HomeAndEnvironment): string {
  // Ignore a relative path, as the XDG specification requires.
  const named = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : undefined;
  return join(named ?? join(home, ".config"), "rollcall", "config.yaml");
}

/** The directory for authorities that were fetched by their fingerprint. */
export function authorityDirectory(shell: HomeAndEnvironment): string {
  return join(dirname(contextFilePath(shell)), "authorities");
}

/** Whether this user has a contexts file. Without one, the YAML library is not loaded. */
export function hasContextFile(shell: HomeAndEnvironment): boolean {
  return existsSync(contextFilePath(shell));
}

/** Read the contexts; empty without a file. Throws Failure when it cannot be read or parsed. */
export async function readContexts(shell: HomeAndEnvironment): Promise<Contexts> {
  const path = contextFilePath(shell);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    if (systemCodeOf(cause) === "ENOENT") return null;
    throw new Failure(`cannot read ${path}: ${systemErrorWords(cause)}`, { cause });
  });
  if (text === null) return NONE;
  const { default: yaml } = await import("yaml");
  const { findDeepNesting } = await import("@rollcall/config/yaml-nesting");
  try {
    const deep = findDeepNesting(text);
    if (deep !== null) throw new Error(deep.message);
    return toContexts(yaml.parse(text));
  } catch (cause) {
    const why = String(Object(cause).message).split("\n", 1)[0];
    throw new Failure(
      `cannot parse ${path}: ${why}\nhint: fix it, or remove it and log in again with \`rollcall login\``,
      { cause },
    );
  }
}

/**
 * Change the contexts. The file is replaced as a whole and readable only by its user. Returns the changed
 * contexts.
 */
export async function changeContexts(
  shell: HomeAndEnvironment,
  change: (contexts: Contexts) => Contexts,
): Promise<Contexts> {
  const path = contextFilePath(shell);
  const changed = change(await readContexts(shell));
  const { default: yaml } = await import("yaml");
  try {
    await makeDirectory(dirname(path), 0o700);
    await replaceFile(path, `${PREFACE}${yaml.stringify(toPlain(changed))}`, 0o600);
  } catch (cause) {
    throw new Failure(`cannot write ${path}: ${systemErrorWords(cause)}`, { cause });
  }
  return changed;
}

const PREFACE = "# Written by `rollcall login` and `rollcall context`. It contains tokens: keep it private.\n";

function toContexts(value: unknown): Contexts {
  const file = mapIn(value ?? {}, "the file");
  const contexts = Object.entries(mapIn(file.contexts ?? {}, "contexts"));
  return {
    current: textIn(file, "current_context"),
    contexts: contexts.map(([name, it]) => toContext(name, mapIn(it ?? {}, `context ${name}`))),
  };
}

type Plain = Readonly<Record<string, unknown>>;

function toContext(name: string, it: Plain): Context {
  if (!isContextName(name)) throw new Error(`'${name}' is not a valid name of a context`);
  return newContext({
    name,
    server: textIn(it, "server"),
    registry: textIn(it, "registry"),
    health: textIn(it, "health"),
    admin: textIn(it, "admin"),
    scheduler: textIn(it, "scheduler"),
    token: textIn(it, "token"),
    tokenFile: textIn(it, "token_file"),
    caFile: textIn(it, "ca_file"),
    insecure: it.insecure === true,
    oidc: it.oidc == null ? null : toLogin(name, mapIn(it.oidc, `oidc of context ${name}`)),
  });
}

function toLogin(name: string, it: Plain): OidcLogin {
  const [issuer, clientId] = [textIn(it, "issuer"), textIn(it, "client_id")];
  if (issuer === null || clientId === null) {
    throw new Error(`oidc of context ${name} lacks issuer or client_id`);
  }
  return {
    issuer,
    clientId,
    audience: textIn(it, "audience") ?? "",
    refreshToken: textIn(it, "refresh_token"),
    // Treat a time that cannot be parsed as expired, so that the token is renewed.
    expiresAtMs: Date.parse(textIn(it, "expires_at") ?? "") || 0,
  };
}

function toPlain({ current, contexts }: Contexts): unknown {
  const entries = contexts.map((it): [string, unknown] => [
    it.name,
    withoutNull({
      server: it.server,
      registry: it.registry,
      health: it.health,
      admin: it.admin,
      scheduler: it.scheduler,
      token: it.token,
      token_file: it.tokenFile,
      ca_file: it.caFile,
      insecure: it.insecure || null,
      oidc: it.oidc === null ? null : loginToPlain(it.oidc),
    }),
  ]);
  return withoutNull({ current_context: current, contexts: Object.fromEntries(entries) });
}

function loginToPlain(login: OidcLogin): unknown {
  return withoutNull({
    issuer: login.issuer,
    client_id: login.clientId,
    audience: login.audience,
    refresh_token: login.refreshToken,
    expires_at: new Date(login.expiresAtMs).toISOString(),
  });
}

function withoutNull(fields: Plain): Plain {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function mapIn(value: unknown, what: string): Plain {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Plain;
  throw new Error(`${what} is not a map`);
}

function textIn(map: Plain, key: string): string | null {
  const value = map[key];
  if (value == null || value === "") return null;
  if (typeof value === "string") return value;
  throw new Error(`${key} is not a string`);
}
