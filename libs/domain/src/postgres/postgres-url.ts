/** One server in a Postgres URL. */
export interface PostgresHost {
  /** A name, an address, or the directory of a Unix socket; empty for the driver's default. */
  readonly host: string;
  readonly port: number;
}

/** How a connection is encrypted, with the values of libpq's sslmode. */
export type PostgresTlsMode = "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full";

/** The TLS settings in a URL. */
export interface PostgresTls {
  /** The value of sslmode; undefined if the URL does not set it. */
  readonly mode: PostgresTlsMode | undefined;
  /** The path of a file, or "system" for this machine's trusted authorities. */
  readonly rootCert: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly password: string | undefined;
  readonly crl: string | undefined;
  /** Whether to start TLS immediately, without asking the server first. */
  readonly isDirect: boolean;
  readonly minVersion: string | undefined;
  readonly maxVersion: string | undefined;
}

/** A Postgres URL, as libpq interprets it. */
export interface PostgresUrl {
  /** The servers in the order in which they are tried; at least one. */
  readonly hosts: readonly PostgresHost[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  /** Whether to use the first server that is writable, instead of the first that responds. */
  readonly mustBeWritable: boolean;
  /** Whether to try the servers in random order. */
  readonly isShuffled: boolean;
  /** Maximum time to connect to one server; undefined if the URL does not set it. */
  readonly connectTimeoutMs: number | undefined;
  readonly tls: PostgresTls;
  readonly applicationName: string | undefined;
  /** Session settings in the form `-c name=value`. */
  readonly options: string | undefined;
  readonly keepAlive: boolean;
  readonly keepAliveIdleMs: number | undefined;
}

/** A parsed URL, or why it cannot be parsed. The reason contains no secret. */
export type PostgresUrlResult =
  | { readonly ok: true; readonly url: PostgresUrl }
  | { readonly ok: false; readonly problem: string };

/** The example URL in messages. */
export const POSTGRES_URL_EXAMPLE = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";

const DEFAULT_PORT = 5432;
const MOST_HOSTS = 32;
const LONGEST = 4_096;
const TLS_MODES: readonly PostgresTlsMode[] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
const TLS_VERSIONS = ["TLSv1.2", "TLSv1.3"];
const ENCODE = "percent-encode characters such as @ : / # % in user and password (@ as %40)";

/** Why libpq parameters are refused, keyed by parameter name. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["hostaddr", "use the address as the host"],
  ["service", "service files are not read; write the parameters into the URL"],
  ["passfile", "password files are not read; write the password into the URL, or set PGPASSWORD"],
  ["require_auth", "the method of authentication cannot be restricted; restrict it in pg_hba.conf"],
  ["requirepeer", "the user that runs a server on a Unix socket cannot be checked"],
  ["sslcrldir", "name one file with sslcrl"],
  ["sslcertmode", "a certificate is sent whenever sslcert names one"],
  ["sslsni", "the name of the server is always sent"],
  ["replication", "replication connections cannot run queries"],
  ["keepalives_interval", "the system's value is used; set keepalives_idle, or net.ipv4.tcp_keepalive_intvl"],
  ["keepalives_count", "the system's value is used; set net.ipv4.tcp_keepalive_probes"],
  ["tcp_user_timeout", "Rollcall has its own time limits"],
  ["krbsrvname", "GSSAPI is not supported"],
  ["gsslib", "GSSAPI is not supported"],
  ["gssdelegation", "GSSAPI is not supported"],
  ["min_protocol_version", "only version 3.0 of the protocol is supported"],
  ["max_protocol_version", "only version 3.0 of the protocol is supported"],
  ["oauth_issuer", "OAuth is not supported"],
  ["oauth_client_id", "OAuth is not supported"],
  ["oauth_client_secret", "OAuth is not supported"],
  ["oauth_scope", "OAuth is not supported"],
]);

/** The supported libpq parameters and their possible values; null if any value is possible. */
const KNOWN: ReadonlyMap<string, readonly string[] | null> = new Map<string, readonly string[] | null>([
  ...["host", "port", "user", "password", "dbname", "options", "application_name"].map((it) => [it, null] as const),
  ...["sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "fallback_application_name"].map(
    (it) => [it, null] as const,
  ),
  ...["connect_timeout", "keepalives_idle"].map((it) => [it, null] as const),
  ["keepalives", ["0", "1"]],
  ["sslmode", TLS_MODES],
  ["sslnegotiation", ["postgres", "direct"]],
  ["sslcompression", ["0"]],
  ["ssl_min_protocol_version", TLS_VERSIONS],
  ["ssl_max_protocol_version", TLS_VERSIONS],
  ["load_balance_hosts", ["disable", "random"]],
  ["target_session_attrs", ["any", "read-write", "primary", "read-only", "standby", "prefer-standby"]],
  ["client_encoding", ["UTF8", "utf8", "UTF-8", "utf-8", "auto"]],
  // Do not allow "require": GSSAPI is not supported, and channel binding only if the driver supports it.
  ["gssencmode", ["disable", "prefer"]],
  ["channel_binding", ["disable", "prefer"]],
]);

class UrlProblem extends Error {}

/** Parse a URL with one or more servers and libpq's parameters. */
export function parsePostgresUrl(text: string): PostgresUrlResult {
  try {
    return { ok: true, url: read(text.trim()) };
  } catch (error) {
    if (error instanceof UrlProblem) return { ok: false, problem: error.message };
    throw error;
  }
}

/** Describe the servers of a URL to people, without user and password: "one:5432, other:5433". */
export function postgresPlace(url: string): string {
  const result = parsePostgresUrl(url);
  return result.ok ? result.url.hosts.map(formatPostgresHost).join(", ") : "a URL that cannot be read";
}

/** Format one server for people. */
export function formatPostgresHost({ host, port }: PostgresHost): string {
  if (host.startsWith("/") || host === "") return `a local socket:${port}`;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function read(text: string): PostgresUrl {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/s.exec(text) ?? [];
  if (rest === undefined || text.length > LONGEST) fail(`should be an address such as ${POSTGRES_URL_EXAMPLE}`);
  const [beforeQuery, query] = splitAt(rest, rest.indexOf("?"));
  // As in libpq, the user ends at the first "@", because a host cannot contain one.
  const at = beforeQuery.search(/[@/]/);
  const hasUser = beforeQuery[at] === "@";
  const userInfo = hasUser ? beforeQuery.slice(0, at) : "";
  const place = hasUser ? beforeQuery.slice(at + 1) : beforeQuery;
  const [authority, path] = splitAt(place, place.indexOf("/"));
  const [user, password] = splitAt(userInfo, userInfo.indexOf(":"));
  const parameters = readParameters(query);
  const given = (name: string) => parameters.get(name) || undefined;
  return {
    hosts: hostsOf(authority, given("host"), given("port")),
    user: given("user") ?? decoded(user, "user"),
    password: given("password") ?? decoded(password, "password"),
    database: given("dbname") ?? decoded(path, "database"),
    ...targetOf(given),
    isShuffled: given("load_balance_hosts") === "random",
    connectTimeoutMs: connectTimeoutOf(given("connect_timeout")),
    tls: tlsOf(given),
    applicationName: given("application_name"),
    options: given("options"),
    keepAlive: given("keepalives") !== "0",
    keepAliveIdleMs: secondsOf("keepalives_idle", given("keepalives_idle")),
  };
}

type Given = (name: string) => string | undefined;

function readParameters(query: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const part of query === "" ? [] : query.split("&")) {
    const [name, value] = splitAt(part, part.indexOf("="));
    const key = decoded(name, "parameter") ?? "";
    if (!part.includes("=")) fail(`the parameter ${shown(key)} has no value`);
    // Accept the form that JDBC uses, as libpq does.
    if (key === "ssl" && value === "true") parameters.set("sslmode", "require");
    else parameters.set(key, checked(key, decoded(value, key) ?? ""));
  }
  return parameters;
}

function checked(name: string, value: string): string {
  const refusal = REFUSED.get(name);
  if (refusal !== undefined) fail(`${name} is not supported: ${refusal}`);
  const words = KNOWN.get(name);
  if (words === undefined) fail(`${shown(name)} is not a parameter of a Postgres URL`);
  if (words !== null && value !== "" && !words.includes(value)) {
    fail(`${name} is ${shown(value)}, and should be ${words.join(", ")}`);
  }
  return value;
}

function hostsOf(authority: string, hostList: string | undefined, portList: string | undefined): PostgresHost[] {
  const parts = authority.split(",").map(readHost);
  const hosts = hostList === undefined ? parts.map(({ host }) => host) : hostList.split(",").map((it) => it.trim());
  const written = portList === undefined ? parts.map(({ port }) => port) : portList.split(",").map((it) => it.trim());
  // Use a single port for all hosts.
  const ports = written.length === 1 ? hosts.map(() => written[0] ?? "") : written;
  if (ports.length !== hosts.length) fail(`it names ${hosts.length} hosts and ${ports.length} ports`);
  if (hosts.length > MOST_HOSTS) fail(`it names more than ${MOST_HOSTS} hosts`);
  if (hosts.length > 1 && hosts.includes("")) fail("one of its hosts is empty");
  return hosts.map((host, index) => ({ host, port: portOf(ports[index] ?? "") }));
}

function readHost(text: string): { readonly host: string; readonly port: string } {
  const [, address, name = "", port = ""] = /^(?:\[([^\]]*)\]|([^:[\]@]*))(?::(.*))?$/.exec(text) ?? fail(ENCODE);
  if (address !== undefined && !/^[0-9a-fA-F:.]+(%.+)?$/.test(address)) fail("[ ] is for an IPv6 address");
  return { host: decoded(address ?? name, "host") ?? "", port };
}

function portOf(text: string): number {
  if (text === "") return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : fail(`a port should be a number from 1 to 65535; ${ENCODE}`);
}

/**
 * Determine which server to use. Rollcall needs a writable server, so a URL that asks for a read-only server is
 * refused.
 */
function targetOf(given: Given): { readonly mustBeWritable: boolean } {
  const wanted = given("target_session_attrs") ?? "any";
  if (["read-only", "standby", "prefer-standby"].includes(wanted)) {
    fail(`target_session_attrs=${wanted} asks for a server that cannot be written to; use read-write`);
  }
  return { mustBeWritable: wanted !== "any" };
}

function tlsOf(given: Given): PostgresTls {
  const rootCert = given("sslrootcert");
  // As in libpq, verify the server's name if public authorities are trusted, because they sign certificates for anyone.
  const mode = (given("sslmode") ?? (rootCert === "system" ? "verify-full" : undefined)) as PostgresTlsMode | undefined;
  if (rootCert === "system" && mode !== "verify-full") fail(`sslrootcert=system needs sslmode=verify-full`);
  const isDirect = given("sslnegotiation") === "direct";
  if (isDirect && !["require", "verify-ca", "verify-full"].includes(mode ?? "")) {
    fail("sslnegotiation=direct needs sslmode=require, verify-ca or verify-full");
  }
  const [cert, key] = [given("sslcert"), given("sslkey")];
  if ((cert === undefined) !== (key === undefined)) fail("sslcert and sslkey must be set together");
  return {
    ...{ mode, rootCert, cert, key, isDirect, crl: given("sslcrl"), password: given("sslpassword") },
    minVersion: given("ssl_min_protocol_version"),
    maxVersion: given("ssl_max_protocol_version"),
  };
}

/** The timeout in milliseconds. As in libpq, 0 or less means no limit, and 1 means 2. */
function connectTimeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\s*-?\d{1,6}\s*$/.test(text) ? Number(text) : fail(wholeSeconds("connect_timeout"));
  return seconds <= 0 ? undefined : Math.max(2, seconds) * 1_000;
}

function secondsOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : fail(wholeSeconds(name));
}

const wholeSeconds = (name: string) => `${name} should be a whole number of seconds`;

/** Decode %XX in a string; undefined for an empty string. A plus sign stays a plus sign. */
function decoded(text: string, what: string): string | undefined {
  if (text === "") return undefined;
  try {
    const value = decodeURIComponent(text);
    return value.includes("\0") ? fail(`the ${what} contains a NUL byte`) : value;
  } catch (error) {
    if (error instanceof UrlProblem) throw error;
    return fail(`the ${what} contains a % without two hexadecimal digits; ${ENCODE}`);
  }
}

/**
 * Split a string at an index. Returns the parts before and after the character at the index. If the index is negative,
 * returns the whole string and "".
 */
function splitAt(text: string, index: number): readonly [string, string] {
  return index < 0 ? [text, ""] : [text.slice(0, index), text.slice(index + 1)];
}

function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text);
}

function fail(problem: string): never {
  throw new UrlProblem(problem);
}
