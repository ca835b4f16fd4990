import type net from "node:net";

/** The other end of a connection as HOST:PORT, an IPv6 address in brackets: what limits and logs know a caller by. */
export function peerOf({
  remoteAddress = "",
  remotePort = 0,
}: Pick<net.Socket, "remoteAddress" | "remotePort">): string {
  return remoteAddress.includes(":") ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
