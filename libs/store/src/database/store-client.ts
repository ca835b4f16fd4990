import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, getCACertificates } from "node:tls";
import {
  formatPostgresHost,
  type PostgresHost,
  type PostgresTls,
  type PostgresUrl,
  parsePostgresUrl,
} from "@rollcall/domain";
import { systemClock } from "@rollcall/process";
import pg from "pg";
import { storeErrorCode } from "./store-error.ts";

/** Settings of a connection in addition to its URL. */
export interface StoreClientConfig extends pg.ClientConfig {
  /** The URL of the database. It overrides the driver's own host, port, user, password, database and ssl options. */
  readonly url: string;
}

/** How to try one server. */
interface Endpoint extends PostgresHost {
  readonly ssl: ConnectionOptions | false;
}

/** The driver's private field that decides about TLS. It is set when a client is created, and read when it connects. */
interface Internals {
  ssl: ConnectionOptions | false;
}

const DEFAULT_LIMIT_MS = 5_000;
/** How long to wait for a server before trying the next one in parallel. */
const STAGGER_MS = 1_000;
const WRITABLE = "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as is_read_only";

/**
 * A connection to the database. If the URL names several servers, each new connection tries them again and takes the
 * first that accepts writes, as libpq does. So connections follow a failover.
 */
export class StoreClient extends pg.Client {
  readonly #url: PostgresUrl;
  readonly #config: pg.ClientConfig;
  readonly #ending = new AbortController();

  constructor({ url: text, ...config }: StoreClientConfig) {
    const url = readUrl(text);
    const first = endpointsOf(url)[0];
    const driver = { ...config, ...driverConfig(url), ...(first ?? {}) };
    super(driver);
    this.#url = url;
    this.#config = driver;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (!needsChoice(this.#url)) return callback === undefined ? super.connect() : void super.connect(callback);
    const connected = this.#connectToChosen();
    if (callback === undefined) return connected;
    // Make the error optional, because on success the driver calls the callback without arguments, which its types do
    // not show.
    const done = callback as (error?: unknown) => void;
    void connected.then(() => done(), done);
    return undefined;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    this.#ending.abort(new Error("Connection terminated"));
    return callback === undefined ? super.end() : void super.end(callback);
  }

  async #connectToChosen(): Promise<pg.Client> {
    const limit = AbortSignal.timeout(this.#config.connectionTimeoutMillis ?? DEFAULT_LIMIT_MS);
    const chosen = await choose(this.#url, this.#config, AbortSignal.any([this.#ending.signal, limit]));
    this.#ending.signal.throwIfAborted();
    // Stop if the pool has destroyed the socket, because the client took too long.
    if (this.connection.stream.destroyed) throw new Error("Connection terminated due to connection timeout");
    Object.assign(this, { host: chosen.host, port: chosen.port, ssl: chosen.ssl });
    (this.connection as unknown as Internals).ssl = chosen.ssl;
    return await super.connect();
  }
}

function readUrl(text: string): PostgresUrl {
  const result = parsePostgresUrl(text);
  if (!result.ok) throw new Error(`the database URL is invalid: ${result.problem}`);
  return result.url;
}

function needsChoice(url: PostgresUrl): boolean {
  return url.hosts.length > 1 || url.mustBeWritable || url.tls.mode === "prefer" || url.tls.mode === "allow";
}

function driverConfig(url: PostgresUrl): pg.ClientConfig {
  const { user, password, database, applicationName, options, keepAlive, keepAliveIdleMs, connectTimeoutMs } = url;
  return {
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(database === undefined ? {} : { database }),
    ...(applicationName === undefined ? {} : { application_name: applicationName }),
    ...(options === undefined ? {} : { options }),
    ...(connectTimeoutMs === undefined ? {} : { connectionTimeoutMillis: connectTimeoutMs }),
    keepAlive,
    ...(keepAliveIdleMs === undefined ? {} : { keepAliveInitialDelayMillis: keepAliveIdleMs }),
    ...(url.tls.isDirect ? { sslnegotiation: "direct" } : {}),
  } as pg.ClientConfig;
}

/** List the servers to try in order, once for each kind of encryption. */
function endpointsOf(url: PostgresUrl): readonly Endpoint[] {
  return url.hosts.flatMap((host) => sslOf(url.tls, host).map((ssl) => ({ ...host, ssl })));
}

/** The kinds of encryption to try with one server, in order. Unix sockets have no TLS. */
function sslOf(tls: PostgresTls, { host }: PostgresHost): readonly (ConnectionOptions | false)[] {
  if (host.startsWith("/")) return [false];
  switch (tls.mode) {
    case undefined:
    case "disable":
      return [false];
    case "allow":
      return [false, unverified(tls)];
    case "prefer":
      return [unverified(tls), false];
    case "require":
      // Like libpq: verify the certificate if an authority is configured or exists in the default place.
      return [rootOf(tls) === undefined ? unverified(tls) : { ...verified(tls), checkServerIdentity: () => undefined }];
    case "verify-ca":
      if (rootOf(tls) === undefined) throw new Error("sslmode=verify-ca needs sslrootcert=FILE");
      return [{ ...verified(tls), checkServerIdentity: () => undefined }];
    case "verify-full":
      return [verified(tls)];
  }
}

function unverified(tls: PostgresTls): ConnectionOptions {
  return { ...ownTls(tls), rejectUnauthorized: false };
}

function verified(tls: PostgresTls): ConnectionOptions {
  const ca = tls.rootCert === "system" ? getCACertificates("system") : rootOf(tls);
  return { ...ownTls(tls), rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
}

/** Read the files again for each connection, so that they can be replaced. */
function ownTls(tls: PostgresTls): ConnectionOptions {
  return {
    ...(tls.cert === undefined ? {} : { cert: fileOf("sslcert", tls.cert) }),
    ...(tls.key === undefined ? {} : { key: fileOf("sslkey", tls.key) }),
    ...(tls.password === undefined ? {} : { passphrase: tls.password }),
    ...(tls.crl === undefined ? {} : { crl: fileOf("sslcrl", tls.crl) }),
    ...(tls.minVersion === undefined ? {} : { minVersion: tls.minVersion as "TLSv1.2" }),
    ...(tls.maxVersion === undefined ? {} : { maxVersion: tls.maxVersion as "TLSv1.3" }),
  };
}

/** The configured certificate authority, or the one in libpq's default place; undefined if neither exists. */
function rootOf(tls: PostgresTls): Buffer | undefined {
  if (tls.rootCert !== undefined) return tls.rootCert === "system" ? undefined : fileOf("sslrootcert", tls.rootCert);
  try {
    return readFileSync(join(homedir(), ".postgresql", "root.crt"));
  } catch {
    // Ignore the error, because most users have no file in libpq's default place.
    return undefined;
  }
}

function fileOf(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`${name}=${path} of the database URL cannot be read: ${Object(cause).code ?? cause}`, { cause });
  }
}

/** The outcome of one attempt to connect. */
type Outcome =
  | { readonly kind: "usable"; readonly endpoint: Endpoint }
  | { readonly kind: "failed"; readonly host: PostgresHost; readonly error: unknown };

/**
 * Try the servers until one works. Each attempt has its own time limit, and a server that does not respond does not
 * delay the next attempt.
 *
 * @throws an error that names each server with its problem.
 */
async function choose(url: PostgresUrl, config: pg.ClientConfig, signal: AbortSignal): Promise<Endpoint> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const mustBeWritable = url.mustBeWritable || url.hosts.length > 1;
  const waiting = url.isShuffled ? shuffled(url.hosts) : [...url.hosts];
  const running = new Set<Promise<Outcome>>();
  const failures: Extract<Outcome, { kind: "failed" }>[] = [];
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = waiting.shift();
      if (next !== undefined) {
        const attempt: Promise<Outcome> = tryHost(url, next, { config, mustBeWritable }, either).then(
          (endpoint) => ({ kind: "usable", endpoint }),
          (error: unknown) => ({ kind: "failed", host: next, error }),
        );
        running.add(attempt);
        void attempt.then(() => running.delete(attempt));
      }
      if (running.size === 0) throw noneUsable(failures);
      const pause = waiting.length === 0 ? [] : [systemClock.sleep(STAGGER_MS, either).then(NOTHING, NOTHING)];
      const outcome = await Promise.race([...running, ...pause]);
      if (outcome?.kind === "usable") return outcome.endpoint;
      if (outcome?.kind === "failed") {
        failures.push(outcome);
        // Like libpq: after one server refuses the user, do not try the other servers.
        if (/^28/.test(storeErrorCode(outcome.error))) throw outcome.error;
      }
    }
  } finally {
    over.abort(new Error("another server was chosen"));
  }
}

/** Ignores whether a pause ended or was aborted: the loop checks for an abort itself. */
const NOTHING = () => null;

function noneUsable(failures: readonly Extract<Outcome, { kind: "failed" }>[]): Error {
  const [first] = failures;
  if (failures.length === 1 && first?.error instanceof Error) return first.error;
  const each = failures.map(({ host, error }) => `${formatPostgresHost(host)}: ${textOf(error)}`).join("; ");
  return new Error(`no database server is usable: ${each}`, { cause: first?.error });
}

function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}

async function tryHost(
  url: PostgresUrl,
  host: PostgresHost,
  how: { readonly config: pg.ClientConfig; readonly mustBeWritable: boolean },
  signal: AbortSignal,
): Promise<Endpoint> {
  const [first, ...others] = sslOf(url.tls, host).map((ssl) => ({ ...host, ssl }));
  if (first === undefined) throw new Error("no server to connect to");
  try {
    await probe(first, how, signal);
    return first;
  } catch (error) {
    const [second] = others;
    if (second === undefined || signal.aborted || isReadOnlyServer(error)) throw error;
    await probe(second, how, signal);
    return second;
  }
}

function isReadOnlyServer(error: unknown): boolean {
  return storeErrorCode(error) === READ_ONLY;
}

/** SQLSTATE of a server that accepts no writes. */
const READ_ONLY = "25006";

/** Connect, and check that the server accepts writes if the URL requires that. */
async function probe(
  { host, port, ssl }: Endpoint,
  { config, mustBeWritable }: { readonly config: pg.ClientConfig; readonly mustBeWritable: boolean },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const limitMs = config.connectionTimeoutMillis ?? DEFAULT_LIMIT_MS;
  const client = new pg.Client({ ...config, host, port, ssl, connectionTimeoutMillis: limitMs });
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {});
  client.on("error", () => {});
  try {
    await Promise.race([client.connect(), aborted]);
    if (!mustBeWritable) return;
    const query: pg.QueryConfig & { readonly query_timeout: number } = { text: WRITABLE, query_timeout: limitMs };
    const { rows } = await Promise.race([client.query<{ is_read_only: boolean }>(query), aborted]);
    if (rows[0]?.is_read_only !== false) {
      throw Object.assign(new Error("it is a standby or read-only"), { code: READ_ONLY });
    }
  } finally {
    void client.end().catch(() => {});
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, rank: Math.random() }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}
