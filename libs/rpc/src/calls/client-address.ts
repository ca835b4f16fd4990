import type net from "node:net";

/** The headers that a proxy sets to name its client. */
interface ForwardingHeaders {
  readonly xForwardedFor: string | undefined;
  readonly forwarded: string | undefined;
}

/**
 * Finds the address that a call comes from, from the socket's peer and the headers of a proxy. See clientAddress() in
 * the domain.
 *
 * @param peer as HOST:PORT.
 */
export type ClientAddress = (peer: string, headers: ForwardingHeaders) => string;

/** Headers as Node.js provides them. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Find the address that a call comes from. This is the peer's address if no proxy is trusted. */
export function addressOf(peer: string, headers: Headers, clientAddress: ClientAddress | undefined): string {
  if (clientAddress === undefined) return peer;
  const xForwardedFor = textOf(headers["x-forwarded-for"]);
  return clientAddress(peer, { xForwardedFor, forwarded: textOf(headers.forwarded) });
}

/** Join the values of a repeated header to one list. */
function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(",") : value;
}

/** Whether an address is a loopback address. Accepts the address as sockets report it, with or without brackets. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.replace(/^\[(.*)\]$/, "$1").replace(/^::ffff:/i, "");
  return plain === "::1" || /^127(?:\.\d{1,3}){3}$/.test(plain);
}

/**
 * The address of a connection's peer as HOST:PORT, with an IPv6 address in brackets. Limits and logs identify callers
 * by this string.
 */
export function peerOf(socket: Pick<net.Socket, "remoteAddress" | "remotePort"> | undefined): string {
  const { remoteAddress = "", remotePort = 0 } = socket ?? {};
  return remoteAddress.includes(":") ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
