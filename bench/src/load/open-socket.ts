import net from "node:net";
import tls from "node:tls";

/** A server on this machine. */
export interface ServerAddress {
  readonly port: number;
  /** The PEM of the authority that signed the server's certificate. Absent: plain text. */
  readonly authority?: string;
}

/** A server, and the loopback address to connect from. */
export interface ConnectTarget extends ServerAddress {
  /**
   * The address to connect from. Each local address has its own ports, so several addresses allow more
   * connections.
   */
  readonly localAddress: string;
}

/**
 * Open an HTTP/2 connection to a server. Bytes written before the connection is open are sent as soon as it
 * is.
 */
export function openSocket({ authority, ...target }: ConnectTarget): net.Socket {
  const address = { host: "127.0.0.1", ...target };
  if (authority === undefined) return net.connect(address);
  const carrier = net.connect(address);
  const socket = tls.connect({ socket: carrier, host: address.host, ca: authority, ALPNProtocols: ["h2"] });
  carriers.set(socket, carrier);
  // Ignore an error of this socket. It ends the TLS connection, which reports "close".
  carrier.on("error", () => {});
  return socket;
}

/** The TCP connection below each TLS connection, because a TLS connection itself cannot be reset. */
const carriers = new WeakMap<net.Socket, net.Socket>();

/** Reset a connection, so that its peer receives RST instead of an orderly close. */
export function resetSocket(socket: net.Socket): void {
  const carrier = carriers.get(socket) ?? socket;
  carrier.resetAndDestroy();
}
