import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { listening } from "./listening.ts";

/** A certificate with its key, as PEM. */
interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/** An HTTP proxy that opens tunnels with CONNECT. A test decides where each address leads. */
export class ConnectProxy {
  /** The ports of this machine to which connections are forwarded, keyed by the requested HOST:PORT. */
  readonly leads = new Map<string, number>();
  /** The requested addresses, in order. */
  readonly asked: string[] = [];
  /** The required credentials, such as "user:password"; null for none. */
  credentials: string | null = null;
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(tls: TlsPair | null) {
    this.#server = tls === null ? createServer() : createSecureServer(tls);
    this.#server.on("connect", (request, socket, head) => this.#open(request, socket, head));
  }

  /** @param tls the proxy's certificate and key, if it uses TLS itself. */
  static async listen(tls: TlsPair | null = null): Promise<ConnectProxy> {
    const proxy = new ConnectProxy(tls);
    proxy.port = await listening(proxy.#server);
    return proxy;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
  }

  #open({ url = "", headers }: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#hold(socket);
    this.asked.push(url);
    const given = Buffer.from((headers["proxy-authorization"] ?? "").replace("Basic ", ""), "base64").toString();
    if (this.credentials !== null && given !== this.credentials) {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const port = this.leads.get(url);
    if (port === undefined) {
      socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const target: Socket = connect(port, "127.0.0.1");
    this.#hold(target);
    target.once("connect", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.length > 0) target.write(head);
      target.pipe(socket).pipe(target);
    });
    target.on("close", () => socket.destroy());
    socket.on("close", () => target.destroy());
  }

  #hold(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
