import net from "node:net";
import tls from "node:tls";

/** A server of this machine. */
export interface ServerAddress {
  readonly port: number;
  /** PEM of the authority of its certificate; it is spoken to in clear text when absent. */
  readonly authority?: string;
}

/** Where to connect to, and from which loopback address. */
export interface ConnectTarget extends ServerAddress {
  /** Each local address has ports of its own, so many of them carry more connections than one can. */
  readonly localAddress: string;
}

/** Open a connection to a server's HTTP/2. What is written before it stands is sent as soon as it does. */
export function openSocket({ authority, ...target }: ConnectTarget): net.Socket {
  const address = { host: "127.0.0.1", ...target };
  if (authority === undefined) return net.connect(address);
  const carrier = net.connect(address);
  const socket = tls.connect({ socket: carrier, host: address.host, ca: authority, ALPNProtocols: ["h2"] });
  carriers.set(socket, carrier);
  // Its errors end the connection above it, whose "close" tells.
  carrier.on("error", () => {});
  return socket;
}

/** The TCP connections below those of TLS, which cannot be reset themselves. */
const carriers = new WeakMap<net.Socket, net.Socket>();

/** Reset a connection: its peer gets RST in place of an orderly end. */
export function resetSocket(socket: net.Socket): void {
  const carrier = carriers.get(socket) ?? socket;
  carrier.resetAndDestroy();
}
