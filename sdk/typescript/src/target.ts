/**
 * Finds the control plane by the rules of the command line. The order is: the options in code, the named context, the
 * environment, the current context, the file of this user's running `rollcall up`, and 127.0.0.1:7700.
 */
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Address, isLoopback, parseAddress } from "./addresses.ts";
import { SERVICE_NAMES, type ServiceName } from "./client.ts";
import { type Context, contextFile, readContext, type Surroundings } from "./contexts.ts";
import type { Credential } from "./credentials.ts";
import { ConfigurationError } from "./errors.ts";

/** What a program sets. Absent options come from the context, the environment or the defaults. */
export interface TargetOptions {
  /** HOST:PORT or a URL that serves all services. */
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
  readonly scheduler?: string;
  /** An access token. */
  readonly token?: string;
  /** A file with an access token. It is read for each call, so that you can replace it. */
  readonly tokenFile?: string;
  /** A PEM file with the authority of the server's certificate. */
  readonly caFile?: string;
  /**
   * "sha256:" and 64 hexadecimal digits. The client fetches the authority from the server, compares its fingerprint,
   * and trusts only this authority.
   */
  readonly caFingerprint?: string;
  /** The name in the server's certificate, if it differs from the address. */
  readonly serverName?: string;
  /** PEM files. */
  readonly clientCertificate?: { readonly certificateFile: string; readonly keyFile: string };
  /** The name of a context of the command line. */
  readonly context?: string;
}

/** The authority that TLS connections trust, and the certificate that they present. */
export interface Trust {
  readonly caFile: string | null;
  readonly caFingerprint: string | null;
  readonly serverName: string | null;
  readonly clientCertificate: { readonly certificateFile: string; readonly keyFile: string } | null;
}

/** How to reach one service. */
export interface ServiceTarget {
  readonly address: Address;
  readonly credential: Credential;
  readonly trust: Trust;
}

const DEFAULT_SERVER = "127.0.0.1:7700";
const SYSTEM_DIRECTORY = "/var/lib/rollcall";

/** Find the control plane without connecting. Throws ConfigurationError. */
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
  // A context that uses TLS always uses it, regardless of other settings, so that its token is never sent in clear
  // text.
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
  /** The base URLs in the context. */
  readonly ofContext: readonly string[];
  /** The URL of this user's running `rollcall up`. */
  readonly ownUrl: string | null;
  readonly data: string;
}

/**
 * The token for one address. A context's token is sent only to the addresses in the context. The data directory's
 * token is sent only to this machine and to the server that wrote it. Any other server could misuse the token.
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

/** If a script's variable is unset, do not fall back to another token, which may have more rights. */
function refuseEmpty(options: TargetOptions): void {
  for (const name of ["token", "tokenFile"] as const) {
    if (options[name]?.trim() === "") throw new ConfigurationError(`${name} is empty`);
  }
}

/**
 * Whether the program or the environment names addresses outside the context. If so, the context's authority is
 * ignored.
 */
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
    throw new ConfigurationError("caFile and caFingerprint cannot be combined");
  const certificate = options.clientCertificate?.certificateFile || env.ROLLCALL_CLIENT_CERT;
  const key = options.clientCertificate?.keyFile || env.ROLLCALL_CLIENT_KEY;
  if (Boolean(certificate) !== Boolean(key)) {
    throw new ConfigurationError("a client certificate and its key must be set together");
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
    `${JSON.stringify(text)} is not a fingerprint; expected sha256: and 64 hexadecimal digits`,
  );
}

function dataDirectory({ env, cwd, home, uid }: Surroundings): string {
  if (env.ROLLCALL_DATA_DIR) return resolve(cwd, env.ROLLCALL_DATA_DIR);
  const here = join(cwd, ".rollcall");
  // Ignore another user's directory. It could redirect calls and their token to that user's server.
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

/**
 * Reads the file that this user's running `rollcall up` wrote. Returns null if the file is missing or incomplete after
 * a crash.
 */
function runFile(data: string): RunFile | null {
  try {
    const { server, tls } = Object(JSON.parse(readFileSync(join(data, "run.json"), "utf8")));
    return typeof server === "string" ? { server, tls: tls ?? null } : null;
  } catch {
    return null;
  }
}
