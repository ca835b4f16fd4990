import { ConfigurationError } from "./errors.ts";

/** One service's address. */
export interface Address {
  /** A URL such as "https://rollcall.example:7700", always with a port. */
  readonly baseUrl: string;
  /** The host in lower case, with an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** Parse HOST:PORT or a URL. Throws a ConfigurationError that names the source. */
export function parseAddress(text: string, source: string, isTls: boolean): Address {
  const read = readAddress(text.trim(), isTls);
  if (typeof read !== "string") return read;
  throw new ConfigurationError(
    `cannot use ${JSON.stringify(shown(text))} from ${source} as an address: ${read}; HOST:PORT or a URL such as ` +
      "https://rollcall.example:7700 is needed",
  );
}

/**
 * Parse an address. Returns any problem as text. The text does not repeat the address, which may contain a
 * password.
 */
function readAddress(text: string, isTls: boolean): Address | string {
  const [, scheme, rest = ""] = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?([\s\S]*)$/.exec(text) ?? [];
  if (scheme !== undefined && !/^https?$/i.test(scheme)) return "its scheme is not http or https";
  if (rest.includes("@")) return "it must have no user and no password";
  if (/[?#]/.test(rest)) return "it must have no query and no fragment";
  const [, authority = "", path = ""] = /^([^/]*)([\s\S]*)$/.exec(rest) ?? [];
  if (path !== "" && path !== "/") return "it must have no path";
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(authority);
  const parts = bracketed ?? /^([^:]*)(?::([^:]*))?$/.exec(authority);
  if (parts === null) return "an IPv6 address needs brackets, as in [::1]:7700";
  const [, host = "", port] = parts;
  const problem = bracketed === null ? nameProblem(host) : ipv6Problem(host);
  if (problem !== null) return problem;
  // Refuse HOST without a port. It would silently mean port 80, where no Rollcall service listens.
  if (scheme === undefined && port === undefined) return "it has no port";
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && +port >= 1 && +port <= 65_535)) {
    return "its port must be from 1 to 65535";
  }
  const isSecure = scheme === undefined ? isTls : scheme.toLowerCase() === "https";
  const number = Number(port ?? (isSecure ? 443 : 80));
  const name = host.toLowerCase();
  const baseUrl = `${isSecure ? "https" : "http"}://${bracketed === null ? name : `[${name}]`}:${number}`;
  return { baseUrl, host: name, port: number, isTls: isSecure };
}

function ipv6Problem(host: string): string | null {
  if (host.includes("%")) return "an IPv6 address cannot have a zone here";
  return host.includes(":") && URL.canParse(`http://[${host}]`) ? null : "its IPv6 address is invalid";
}

function nameProblem(host: string): string | null {
  if (host === "") return "it has no host";
  if (/[^ -~]/.test(host)) return "its host is not in ASCII: write a name of another script as xn--...";
  if (!/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?$/.test(host) || host.length > 253) return "its host is invalid";
  // Refuse a name whose last part is a number, unless it is a valid IP address. Programs differ in how they parse
  // such a name as an address.
  if (!/(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host)) return null;
  const isIpv4 = /^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(?!$)|$)){4}$/.test(host);
  return isIpv4 ? null : "its IPv4 address is invalid";
}

/** The address without any part that may be a password or a token. */
function shown(text: string): string {
  return text
    .trim()
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:\/\/)?[\s\S]*@/, "$1***@")
    .replace(/[?#][\s\S]*$/, "");
}

/** Whether the address is on this machine, so that calls to it never leave the machine. */
export function isLoopback({ host }: Address): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
