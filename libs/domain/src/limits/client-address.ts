/** The headers that proxies use to name their client, as received; undefined if absent. */
export interface ForwardingHeaders {
  readonly xForwardedFor: string | undefined;
  readonly forwarded: string | undefined;
}

/** Whether a host is a trusted proxy, any other address, or not an address. */
export type HostKind = "proxy" | "other" | "invalid";

/** One address in a chain of proxies: a host, and its port if given. */
interface Hop {
  readonly host: string;
  readonly port: string;
}

/**
 * The address of the client that makes a call. This is the peer's address. If the peer is a trusted proxy, it is the
 * last address in the headers' chain that is not a trusted proxy, because everything to the left of that address may
 * be forged. If there is no such address, or an entry that is not an address ("unknown", "_hidden", garbage) comes
 * first, the leftmost trusted proxy found so far counts as the client.
 *
 * X-Forwarded-For is used if present, even if empty, because nearly every proxy writes it. Forwarded (RFC 7239) is
 * used only without it.
 *
 * @param peer the socket's peer as HOST:PORT, with brackets around an IPv6 host.
 * @returns HOST:PORT, or only HOST if the proxy gave no port; an IPv6 host has brackets.
 */
export function clientAddress(peer: string, headers: ForwardingHeaders, evaluate: (host: string) => HostKind): string {
  // Return early, because most calls have neither header.
  if (headers.xForwardedFor === undefined && headers.forwarded === undefined) return peer;
  const own = parsePeer(peer);
  if (own === null || evaluate(own.host) !== "proxy") return peer;
  let client: Hop | null = null;
  for (const text of chainOf(headers).toReversed()) {
    const hop = parseHop(text);
    const evaluation = hop === null ? "invalid" : evaluate(hop.host);
    if (hop === null || evaluation === "invalid") break;
    client = hop;
    if (evaluation === "other") break;
  }
  return client === null ? peer : formatHop(client);
}

/** The addresses of the chain in the headers' order. The first may have been written by the client itself. */
function chainOf({ xForwardedFor, forwarded }: ForwardingHeaders): readonly string[] {
  if (xForwardedFor !== undefined) return xForwardedFor.split(",").map((text) => text.trim());
  if (forwarded === undefined) return [];
  return splitOutsideQuotes(forwarded, ",").map(forParameter);
}

/**
 * The "for" parameter of one element of a Forwarded header. If the element has none, or more than one, this is "",
 * which is not an address.
 */
function forParameter(element: string): string {
  const values = splitOutsideQuotes(element, ";").flatMap((pair) => {
    const [, name = "", value = ""] = /^\s*([^=\s]+)=(.*?)\s*$/.exec(pair) ?? [];
    return name.toLowerCase() === "for" ? [value] : [];
  });
  const [value = ""] = values;
  if (values.length !== 1) return "";
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value)?.[1];
  return quoted === undefined ? value : quoted.replaceAll(/\\(.)/g, "$1");
}

/** Split a string at separators outside of quotes. An unclosed quote extends to the end. */
function splitOutsideQuotes(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isQuoted && character === "\\") at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(text.slice(from));
  return parts;
}

/**
 * Parse "10.0.0.1", "10.0.0.1:4711", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:4711"; null for anything else.
 */
function parseHop(text: string): Hop | null {
  const bracketed = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/.exec(text);
  if (bracketed !== null) return { host: bracketed[1] ?? "", port: bracketed[2] ?? "" };
  const plain = /^([0-9.]{7,15})(?::(\d{1,5}))?$/.exec(text);
  if (plain !== null) return { host: plain[1] ?? "", port: plain[2] ?? "" };
  return /^[0-9A-Fa-f:.]{2,45}$/.test(text) && text.includes(":") ? { host: text, port: "" } : null;
}

/** Parse a socket's peer. */
function parsePeer(peer: string): Hop | null {
  const [, bracketed = "", host = bracketed, port = ""] = /^(?:\[(.*)\]|([^:]+)):(\d{1,5})$/.exec(peer) ?? [];
  return host === "" ? null : { host: host.replace(/%.*$/, ""), port };
}

function formatHop({ host, port }: Hop): string {
  const name = host.includes(":") ? `[${host.toLowerCase()}]` : host;
  return port === "" ? name : `${name}:${port}`;
}

/**
 * The part of an address that identifies one party: a whole IPv4 address, or the /64 network of an IPv6 address,
 * because a host can choose any address in its network. Any other string is a separate party.
 *
 * @param peer HOST:PORT, [HOST]:PORT or HOST.
 */
export function addressGroup(peer: string): string {
  const host = hostOf(peer);
  if (!host.includes(":")) return host;
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(host)?.[1];
  if (mapped !== undefined) return mapped;
  const [address = ""] = host.split("%", 1);
  const [head = "", tail] = address.toLowerCase().split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...behind];
  const network = all.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ""));
  return `${network.join(":")}::/64`;
}

/**
 * The host of an address, for display and the store: in lower case, without port and zone, and with an IPv4-mapped
 * IPv6 address as IPv4. Null if the peer has no host, for example because its socket is closed.
 *
 * @param peer HOST:PORT or HOST, with an IPv6 host in brackets.
 */
export function plainHost(peer: string): string | null {
  const [host = ""] = hostOf(peer).toLowerCase().split("%", 1);
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(host)?.[1];
  return (mapped ?? host) || null;
}

/** The host of HOST:PORT, [HOST]:PORT or HOST. */
export function hostOf(peer: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(peer)?.[1];
  if (bracketed !== undefined) return bracketed;
  const colons = peer.split(":").length - 1;
  return colons === 1 ? peer.slice(0, peer.indexOf(":")) : peer;
}
