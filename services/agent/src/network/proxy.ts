import { BlockList, isIP } from "node:net";
import { type Address, formatAddress, parseAddress } from "@rollcall/config";

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
  const written = text.includes("://") ? text : `http://${text}`;
  if (!URL.canParse(written)) return null;
  const { protocol, hostname, port, pathname, search, username, password } = new URL(written);
  const standardPort = STANDARD_PORTS.get(protocol);
  if (standardPort === undefined || hostname === "" || pathname !== "/" || search !== "") return null;
  const credentials = decoded(`${username}:${password}`);
  if (credentials === null) return null;
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? standardPort : Number(port),
    isSecure: protocol === "https:",
    authorization: username === "" ? null : `Basic ${Buffer.from(credentials).toString("base64")}`,
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

const STANDARD_PORTS: ReadonlyMap<string, number> = new Map([
  ["http:", 80],
  ["https:", 443],
]);

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function isThisMachine(host: string): boolean {
  return /^(.*\.)?localhost$/i.test(host) || matches(LOOPBACK, host);
}

function exceptionRule(written: string): (target: Address) => boolean {
  const text = written.trim().toLowerCase();
  if (text === "*") return () => true;
  const [, network = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  if (isIP(network) !== 0) {
    const block = blockOf(network, Number(bits));
    return ({ host }) => block !== null && matches(block, host);
  }
  const isBare = isIP(text) !== 0;
  const address = isBare ? null : parseAddress(text.replace(/^\*?\./, ""));
  const named = (address?.host ?? text.replace(/^\[(.*)\]$/, "$1")).replace(/^\*?\./, "");
  return ({ host, port }) => {
    const asked = host.toLowerCase();
    if (named === "" || (address !== null && address.port !== port)) return false;
    if (isIP(named) !== 0) return matches(blockOf(named, isIP(named) === 4 ? 32 : 128), asked);
    return asked === named || asked.endsWith(`.${named}`);
  };
}

function blockOf(network: string, bits: number): BlockList | null {
  const block = new BlockList();
  const version = isIP(network);
  if (version === 0 || bits > (version === 4 ? 32 : 128)) return null;
  block.addSubnet(network, bits, version === 4 ? "ipv4" : "ipv6");
  return block;
}

function matches(block: BlockList | null, host: string): boolean {
  const version = isIP(host);
  return block !== null && version !== 0 && block.check(host, version === 4 ? "ipv4" : "ipv6");
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");
