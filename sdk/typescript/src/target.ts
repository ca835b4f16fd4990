/**
 * Which control plane a program talks to, by the rules of the command line: what is named in the code wins, then the
 * context that is named, then the environment, then the context in use, then what the running `rollcall up` of this
 * user wrote, then 127.0.0.1:7700.
 */
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Address, isLoopback, parseAddress } from "./addresses.ts";
import { SERVICE_NAMES, type ServiceName } from "./client.ts";
import { type Context, contextFile, readContext, type Surroundings } from "./contexts.ts";
import type { Credential } from "./credentials.ts";
import { ConfigurationError } from "./errors.ts";

/** What a program names itself; what is absent is left to the context, the environment and the defaults. */
export interface TargetOptions {
  /** HOST:PORT or a URL of all services. */
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
  readonly scheduler?: string;
  /** An access token. */
  readonly token?: string;
  /** A file that holds one; it is read again for each call, so that it may be replaced. */
  readonly tokenFile?: string;
  /** PEM file of the authority of the server's certificate. */
  readonly caFile?: string;
  /** "sha256:" and 64 hexadecimal digits: the authority is fetched from the server, compared, and alone trusted. */
  readonly caFingerprint?: string;
  /** The name that the server's certificate is for, where that is not the address's. */
  readonly serverName?: string;
  /** PEM files. */
  readonly clientCertificate?: { readonly certificateFile: string; readonly keyFile: string };
  /** A context of the command line. */
  readonly context?: string;
}

/** What connections over TLS trust, and show. */
export interface Trust {
  readonly caFile: string | null;
  readonly caFingerprint: string | null;
  readonly serverName: string | null;
  readonly clientCertificate: { readonly certificateFile: string; readonly keyFile: string } | null;
}

/** How one service is reached. */
export interface ServiceTarget {
  readonly address: Address;
  readonly credential: Credential;
  readonly trust: Trust;
}

const DEFAULT_SERVER = "127.0.0.1:7700";
const SYSTEM_DIRECTORY = "/var/lib/rollcall";

/** Find the control plane. Throws ConfigurationError; connects to nothing. */
export function resolveTarget(options: TargetOptions, at: Surroundings): Readonly<Record<ServiceName, ServiceTarget>> {
  refuseEmpty(options);
  const { env } = at;
  const data = dataDirectory(at);
  const run = runFile(data);
  const context = readContext(contextFile(at), options.context ?? (env.ROLLCALL_CONTEXT || null));
  const isNamed = options.context !== undefined;
  const trust = trustOf(options, at, context, isElsewhere(options, env, isNamed));
  const wantsTls = [trust.caFile, trust.caFingerprint, trust.serverName, trust.clientCertificate].some(Boolean);
  const isOwn = (text: string) => run?.tls != null && text === run.server;
  const parse = (text: string, source: string) => parseAddress(text, source, wantsTls || isOwn(text));
  // What the context meant by TLS stays so, whatever is named besides: its token never goes in clear text instead.
  const contextTls = wantsTls || context?.caFile != null;
  const ofContext = Object.values(context?.addresses ?? {}).map(
    (it) => parseAddress(it, "the context", contextTls || isOwn(it)).baseUrl,
  );
  const ownUrl = run === null ? null : parseAddress(run.server, "the run file", run.tls !== null).baseUrl;
  const entries = SERVICE_NAMES.map((service): [ServiceName, ServiceTarget] => {
    const inContext = context?.addresses[service] ?? context?.addresses.server;
    const variable = `ROLLCALL_${service.toUpperCase()}`;
    const candidates: readonly (readonly [string | undefined, string])[] = [
      [options[service], service],
      [options.server, "server"],
      [isNamed ? inContext : undefined, "the context"],
      [env[variable], variable],
      [env.ROLLCALL_SERVER, "ROLLCALL_SERVER"],
      [inContext, "the context"],
      [run?.server, "the run file"],
    ];
    const [text = DEFAULT_SERVER, source] = candidates.find(([it]) => it) ?? [DEFAULT_SERVER, "the default"];
    const address = parse(text, source);
    const credential = credentialFor(address, { options, at, context, isNamed, ofContext, ownUrl, data });
    const own = address.baseUrl === ownUrl ? (run?.tls ?? null) : null;
    const trusted = {
      ...trust,
      caFile: trust.caFile ?? (trust.caFingerprint === null ? (own?.caFile ?? null) : null),
      serverName: trust.serverName ?? own?.serverName ?? null,
    };
    return [service, { address, credential, trust: trusted }];
  });
  return Object.fromEntries(entries) as Record<ServiceName, ServiceTarget>;
}

interface Known {
  readonly options: TargetOptions;
  readonly at: Surroundings;
  readonly context: Context | null;
  readonly isNamed: boolean;
  /** Base URLs that the context names. */
  readonly ofContext: readonly string[];
  /** That of the running `up` of this user. */
  readonly ownUrl: string | null;
  readonly data: string;
}

/**
 * The token for one address. A context's is for the addresses that the context names alone, the data directory's for
 * this machine and for the server that wrote it: any other server could misuse them.
 */
function credentialFor(
  address: Address,
  { options, at, context, isNamed, ofContext, ownUrl, data }: Known,
): Credential {
  const named = tokenOrFile(options.token, options.tokenFile, at.cwd);
  if (named !== null) return named;
  const inContext = context !== null && ofContext.includes(address.baseUrl) ? credentialOf(context, at) : null;
  if (isNamed && inContext !== null) return inContext;
  const inEnvironment = tokenOrFile(at.env.ROLLCALL_TOKEN, at.env.ROLLCALL_TOKEN_FILE, at.cwd);
  if (inEnvironment !== null) return inEnvironment;
  if (inContext !== null) return inContext;
  if (!isLoopback(address) && address.baseUrl !== ownUrl) return { kind: "none" };
  return { kind: "file", path: join(data, "admin-token"), isRequired: false };
}

function credentialOf({ name, token, tokenFile, login }: Context, at: Surroundings): Credential | null {
  if (login !== null) return { kind: "login", file: contextFile(at), context: name };
  return tokenOrFile(token ?? undefined, tokenFile ?? undefined, at.cwd);
}

function tokenOrFile(token: string | undefined, file: string | undefined, cwd: string): Credential | null {
  if (token) return { kind: "token", token: token.trim() };
  return file ? { kind: "file", path: resolve(cwd, file), isRequired: true } : null;
}

/** A script's variable that was not set must not be replaced by a token that may do more. */
function refuseEmpty(options: TargetOptions): void {
  for (const name of ["token", "tokenFile"] as const) {
    if (options[name]?.trim() === "") throw new ConfigurationError(`${name} is empty`);
  }
}

/** A context's authority is for its own addresses: it is ignored where others are named. */
function isElsewhere(options: TargetOptions, env: Surroundings["env"], isNamed: boolean): boolean {
  return (["server", ...SERVICE_NAMES] as const).some(
    (it) => options[it] || (!isNamed && env[`ROLLCALL_${it.toUpperCase()}`]),
  );
}

function trustOf(
  options: TargetOptions,
  { env, cwd }: Surroundings,
  context: Context | null,
  elsewhere: boolean,
): Trust {
  if (options.caFile && options.caFingerprint)
    throw new ConfigurationError("caFile and caFingerprint exclude each other");
  const certificate = options.clientCertificate?.certificateFile || env.ROLLCALL_CLIENT_CERT;
  const key = options.clientCertificate?.keyFile || env.ROLLCALL_CLIENT_KEY;
  if (Boolean(certificate) !== Boolean(key)) {
    throw new ConfigurationError("a client certificate and its key go together");
  }
  const caFingerprint = options.caFingerprint ? parseFingerprint(options.caFingerprint) : null;
  const named = options.caFile || (caFingerprint === null ? env.ROLLCALL_CA_FILE : undefined);
  const ofContext = elsewhere || caFingerprint !== null ? null : (context?.caFile ?? null);
  return {
    caFile: named ? resolve(cwd, named) : ofContext,
    caFingerprint,
    serverName: options.serverName || env.ROLLCALL_TLS_SERVER_NAME || null,
    clientCertificate:
      certificate && key ? { certificateFile: resolve(cwd, certificate), keyFile: resolve(cwd, key) } : null,
  };
}

function parseFingerprint(text: string): string {
  const [, written = ""] = /^(?:sha256(?: fingerprint=|:|=))?([0-9a-f:]+)$/i.exec(text.trim()) ?? [];
  const digits = written.replaceAll(":", "").toLowerCase();
  if (digits.length === 64) return `sha256:${digits}`;
  throw new ConfigurationError(
    `${JSON.stringify(text)} is no fingerprint: sha256: and 64 hexadecimal digits are needed`,
  );
}

function dataDirectory({ env, cwd, home, uid }: Surroundings): string {
  if (env.ROLLCALL_DATA_DIR) return resolve(cwd, env.ROLLCALL_DATA_DIR);
  const here = join(cwd, ".rollcall");
  // Another user's directory could send calls, and the token with them, to a server of theirs.
  if (belongsTo(here, uid)) return here;
  const own = join(home, ".rollcall");
  return uid === 0 && !belongsTo(own, uid) ? SYSTEM_DIRECTORY : own;
}

function belongsTo(path: string, uid: number | null): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && (uid === null || found.uid === uid);
}

interface RunFile {
  readonly server: string;
  readonly tls: { readonly caFile: string | null; readonly serverName: string | null } | null;
}

/** What the running `rollcall up` of this user wrote; null where there is none, or a crash left half of it. */
function runFile(data: string): RunFile | null {
  try {
    const { server, tls } = Object(JSON.parse(readFileSync(join(data, "run.json"), "utf8")));
    return typeof server === "string" ? { server, tls: tls ?? null } : null;
  } catch {
    return null;
  }
}
