import { type Address, formatAddress, parseAddress, readUrl } from "@rollcall/config";
import { isInNetwork, type Network, parseIpAddress, parseNetwork } from "@rollcall/domain";

/** An HTTP proxy that opens tunnels with CONNECT. */
export interface HttpProxy extends Address {
  /** Whether the proxy itself is reached over TLS. */
  readonly isSecure: boolean;
  /** The authorities that verify the proxy's certificate, as PEM. Default: those bundled with Node.js. */
  readonly authorities?: Buffer;
  /** The value of Proxy-Authorization; null if no credentials are set. Never logged. */
  readonly authorization: string | null;
}

/** Returns the proxy for an address; null for a direct connection. */
export type ProxyRule = (target: Address) => HttpProxy | null;

/** The error for an invalid proxy. It does not repeat the given text, which may contain a password. */
export const PROXY_RULE =
  "should be http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before HOST if the proxy needs them";

/** Parse a proxy's URL; null if it is invalid. HOST:PORT is sufficient; the default port is 80, or 443 with https. */
export function parseProxy(text: string): HttpProxy | null {
  const read = readUrl(text, { schemes: ["http", "https"], users: true });
  if (!read.ok) return null;
  const { scheme, user, password, host, port } = read;
  const isSecure = scheme === "https";
  return {
    host,
    port: port ?? (isSecure ? 443 : 80),
    isSecure,
    authorization: user === null ? null : `Basic ${Buffer.from(`${user}:${password ?? ""}`).toString("base64")}`,
  };
}

/**
 * The rule for a proxy and its exceptions. As in NO_PROXY, exceptions are host names (which include all names below
 * them), addresses and networks, each with an optional port, or * for everything. This machine itself is never
 * reached through a proxy.
 */
export function proxyRule(proxy: HttpProxy | null, exceptions: readonly string[]): ProxyRule {
  if (proxy === null) return () => null;
  const rules = exceptions.map(exceptionRule);
  return (target) => (isThisMachine(target.host) || rules.some((isMeant) => isMeant(target)) ? null : proxy);
}

/** Format the proxy for display, without its credentials. */
export function shownProxy(proxy: HttpProxy): string {
  return `${proxy.isSecure ? "https" : "http"}://${formatAddress(proxy)}`;
}

function isThisMachine(host: string): boolean {
  return /^(.*\.)?localhost\.?$/i.test(host) || LOOPBACK.some((network) => isIn(host, network));
}

function exceptionRule(written: string): (target: Address) => boolean {
  const text = written.trim().toLowerCase();
  if (text === "*") return () => true;
  const network = parseNetwork(text);
  if (network !== null) return ({ host }) => isIn(host, network);
  const address = parseAddress(text.replace(/^\*?\./, ""));
  const named = (address?.host ?? text.replace(/^\[(.*)\]$/, "$1")).replace(/^\*?\./, "");
  const own = parseNetwork(named);
  return ({ host, port }) => {
    const asked = host.toLowerCase();
    if (named === "" || (address !== null && address.port !== port)) return false;
    return own === null ? asked === named || asked.endsWith(`.${named}`) : isIn(asked, own);
  };
}

function isIn(host: string, network: Network): boolean {
  const address = parseIpAddress(host);
  return address !== null && isInNetwork(address, network);
}

const LOOPBACK = ["127.0.0.0/8", "::1"].flatMap((text) => parseNetwork(text) ?? []);
