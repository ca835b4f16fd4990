import { type Address, formatAddress, parseAddress, readUrl } from "@rollcall/config";
import { isInNetwork, type Network, parseIpAddress, parseNetwork } from "@rollcall/domain";

/** An HTTP proxy that opens tunnels by CONNECT. */
export interface HttpProxy extends Address {
  /** Whether the proxy itself is reached over TLS. */
  readonly isSecure: boolean;
  /** The authorities of its certificate, as PEM. Default: those that Node.js brings along. */
  readonly authorities?: Buffer;
  /** What the proxy is told in Proxy-Authorization; null where it asks for nothing. Never logged. */
  readonly authorization: string | null;
}

/** Returns the proxy by which an address is reached; null for none. */
export type ProxyRule = (target: Address) => HttpProxy | null;

/** What is wrong with a text that is no proxy; it does not repeat the text, which may hold a password. */
export const PROXY_RULE =
  "is no proxy: should be http://HOST:PORT or https://HOST:PORT, with USER:PASSWORD@ before HOST if it asks for them";

/**
 * Read a proxy's URL; null for anything else. HOST:PORT is enough, and the port is 80, or 443 with https, where none
 * is given.
 */
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
 * The rule of a proxy and of what is reached without it: as in NO_PROXY host names, which stand for all names below
 * them as well, addresses, networks, each with or without a port, and * for everything. This machine itself is never
 * reached by a proxy.
 */
export function proxyRule(proxy: HttpProxy | null, exceptions: readonly string[]): ProxyRule {
  if (proxy === null) return () => null;
  const rules = exceptions.map(exceptionRule);
  return (target) => (isThisMachine(target.host) || rules.some((isMeant) => isMeant(target)) ? null : proxy);
}

/** How a proxy is shown: without what it is told about its user. */
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
