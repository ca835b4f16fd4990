import { isIP } from "node:net";

export interface Authority {
  /** A lower-case name or an IP address. IPv6 addresses have no brackets. */
  readonly host: string;
  /** Null when absent. */
  readonly port: number | null;
}

export interface ReadUrl extends Authority {
  /** In lower case; null when absent. */
  readonly scheme: string | null;
  /** Decoded, like the password; null when absent. */
  readonly user: string | null;
  readonly password: string | null;
  /** Without a trailing slash. */
  readonly path: string;
}

/** The parts that a URL can have. */
export interface UrlRules {
  readonly schemes: readonly string[];
  readonly users?: boolean;
  readonly paths?: boolean;
  readonly queries?: boolean;
}

/** Why parsing failed. The reason quotes nothing from the text, which may contain a password. */
export interface UnreadUrl {
  readonly ok: false;
  readonly reason: string;
}

const refused = (reason: string): UnreadUrl => ({ ok: false, reason });

/**
 * Parse [SCHEME://][USER[:PASSWORD]@]HOST[:PORT][/PATH][?QUERY]. Forms that programs interpret differently are
 * rejected: short and hexadecimal IPv4, IPv6 zones, names outside ASCII, and backslashes.
 */
export function readUrl(written: string, rules: UrlRules): ({ readonly ok: true } & ReadUrl) | UnreadUrl {
  const { schemes, users = false, paths = false, queries = false } = rules;
  const text = queries ? written.trim().replace(/\?[^#]*/, "") : written.trim();
  const [, named, rest = ""] = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?([\s\S]*)$/.exec(text) ?? [];
  const scheme = named?.toLowerCase() ?? null;
  if (scheme !== null && !schemes.includes(scheme)) return refused(`its scheme is not ${schemes.join(" or ")}`);
  if (!users && rest.includes("@")) return refused("it must have no user and no password");
  const parts = /^(?:([^/?#\\]*)@)?([^@]*)$/.exec(rest);
  const credentials = parts === null ? null : readCredentials(parts[1]);
  if (credentials === null) return refused("a character of its user or password must be percent-encoded");
  const [, , place = ""] = parts ?? [];
  if (/[?#]/.test(place)) return refused(`it must have no ${queries ? "fragment" : "query and no fragment"}`);
  const [, authority = "", path = ""] = /^([^/]*)([\s\S]*)$/.exec(place) ?? [];
  if (!paths && path !== "" && path !== "/") return refused("it must have no path");
  const read = readAuthority(authority);
  if (!read.ok) return read;
  if (/[\s\\]/.test(written.trim())) return refused("it has white space or a backslash");
  return { ok: true, scheme, ...credentials, host: read.host, port: read.port, path: path.replace(/\/+$/, "") };
}

/** Decode a user and password; null when they cannot be decoded. */
function readCredentials(text: string | undefined): Pick<ReadUrl, "user" | "password"> | null {
  if (text === undefined) return { user: null, password: null };
  const [, user = "", password] = /^([^:]*)(?::([\s\S]*))?$/.exec(text) ?? [];
  try {
    return {
      user: decodeURIComponent(user),
      password: password === undefined ? null : decodeURIComponent(password),
    };
  } catch {
    return null;
  }
}

/** Parse HOST or HOST:PORT, with IPv6 in brackets. */
export function readAuthority(text: string): ({ readonly ok: true } & Authority) | UnreadUrl {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(text);
  const parts = bracketed ?? /^([^:]*)(?::([^:]*))?$/.exec(text);
  if (parts === null) return refused("an IPv6 address needs brackets, as in [::1]:7700");
  const [, host = "", port] = parts;
  const problem = bracketed === null ? nameProblem(host) : ipv6Problem(host);
  if (problem !== null) return refused(problem);
  if (port === undefined) return { ok: true, host: host.toLowerCase(), port: null };
  const isPort = /^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535;
  return isPort
    ? { ok: true, host: host.toLowerCase(), port: Number(port) }
    : refused("its port must be from 1 to 65535");
}

function ipv6Problem(host: string): string | null {
  if (host.includes("%")) return "an IPv6 address cannot have a zone here";
  return isIP(host) === 6 ? null : "its IPv6 address is invalid";
}

function nameProblem(host: string): string | null {
  if (host === "") return "it has no host";
  if (/[^ -~]/.test(host)) return "its host is not in ASCII: write a name of another script as xn--...";
  if (!/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$/.test(host) || host.length > 253) return "its host is invalid";
  // Reject names whose last label is a number, because programs disagree on whether such a name is an address.
  const isNumeric = /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host);
  return isNumeric && isIP(host) !== 4 ? "its IPv4 address is invalid" : null;
}
