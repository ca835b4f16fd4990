/** The headers in which a proxy names its client: both values as received, undefined where there is none. */
export interface ForwardingHeaders {
  readonly xForwardedFor: string | undefined;
  readonly forwarded: string | undefined;
}

/** What is known of a host: one of the trusted proxies, any other address, or a text that is no address. */
export type HostJudgement = "proxy" | "other" | "invalid";

/** One address of a chain: a host, and a port where one was named. */
interface Hop {
  readonly host: string;
  readonly port: string;
}

/**
 * The address that a call comes from: the peer's own, or, where the peer is a trusted proxy, the last one of the chain
 * of the headers that is no trusted proxy. What stands to the left of that was written by the caller and may be
 * anything. Where the chain ends, or has a text that is no address ("unknown", "_hidden", rubbish), the last trusted
 * proxy that is known stands for its callers.
 *
 * X-Forwarded-For counts where there is one, even an empty one, since nearly every proxy writes it; Forwarded (RFC
 * 7239) only without it.
 *
 * @param peer the socket's peer as HOST:PORT, with an IPv6 host in brackets or not.
 * @returns HOST:PORT, or HOST alone where the proxy named no port; an IPv6 host in brackets.
 */
export function clientAddress(
  peer: string,
  headers: ForwardingHeaders,
  judge: (host: string) => HostJudgement,
): string {
  // Of most calls nothing has to be judged.
  if (headers.xForwardedFor === undefined && headers.forwarded === undefined) return peer;
  const own = parsePeer(peer);
  if (own === null || judge(own.host) !== "proxy") return peer;
  let client: Hop | null = null;
  for (const text of chainOf(headers).toReversed()) {
    const hop = parseHop(text);
    const judgement = hop === null ? "invalid" : judge(hop.host);
    if (hop === null || judgement === "invalid") break;
    client = hop;
    if (judgement === "other") break;
  }
  return client === null ? peer : formatHop(client);
}

/** The addresses of the chain as they are written, the caller's first. */
function chainOf({ xForwardedFor, forwarded }: ForwardingHeaders): readonly string[] {
  if (xForwardedFor !== undefined) return xForwardedFor.split(",").map((text) => text.trim());
  if (forwarded === undefined) return [];
  return splitOutsideQuotes(forwarded, ",").map(forParameter);
}

/** The "for" of one element of a Forwarded header; empty, which is no address, where it has none or two. */
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

/** Split a text at a separator that is in no quoted string. A quote that is never closed takes in the rest. */
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
 * "10.0.0.1", "10.0.0.1:4711", "2001:db8::1", "[2001:db8::1]" or "[2001:db8::1]:4711"; null for what cannot be any of
 * them.
 */
function parseHop(text: string): Hop | null {
  const bracketed = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/.exec(text);
  if (bracketed !== null) return { host: bracketed[1] ?? "", port: bracketed[2] ?? "" };
  const plain = /^([0-9.]{7,15})(?::(\d{1,5}))?$/.exec(text);
  if (plain !== null) return { host: plain[1] ?? "", port: plain[2] ?? "" };
  return /^[0-9A-Fa-f:.]{2,45}$/.test(text) && text.includes(":") ? { host: text, port: "" } : null;
}

/** A socket's peer, which grpc-js writes without brackets: what follows its last colon is the port. */
function parsePeer(peer: string): Hop | null {
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/.exec(peer) ?? [];
  if (host === "") return null;
  return { host: host.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, ""), port };
}

function formatHop({ host, port }: Hop): string {
  const name = host.includes(":") ? `[${host.toLowerCase()}]` : host;
  return port === "" ? name : `${name}:${port}`;
}

/**
 * The part of an address that stands for one party: the whole of an IPv4 address, and the /64 of an IPv6 address,
 * within which a host may choose any address. Any other text is a party of its own.
 *
 * @param peer HOST:PORT, [HOST]:PORT or HOST.
 */
export function addressGroup(peer: string): string {
  const host = hostOf(peer);
  if (!host.includes(":")) return host;
  // grpc-js writes IPv6 without brackets, its port included; of the first four groups that port is never one.
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i.exec(host)?.[1];
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
 * The host of an address for people and the record: in lower case, without port and zone, an IPv4 address that is
 * written as an IPv6 one as itself. Null for a peer that has none, such as a socket that is gone.
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
