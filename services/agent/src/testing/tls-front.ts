import { connect } from "node:net";
import { createServer as createTlsServer, type Server, type TLSSocket } from "node:tls";
import { listening } from "./listening.ts";

/** What a front shows, hands out, and passes on to. */
export interface TlsFrontOptions {
  /** The chain of its certificate, and the key. */
  readonly certPem: string;
  readonly keyPem: string;
  /** What it answers to GET /ca.pem; null for 404. */
  served: string | null;
  /** The port in clear text, on this machine, to which it passes HTTP/2 on. */
  readonly to: number;
  readonly host?: string;
}

/** A server's TLS in front of a fake server that has none. */
export class TlsFront {
  readonly options: TlsFrontOptions;
  /** Connections of HTTP/2 whose handshake was done. */
  passed = 0;
  /** How often the authority was asked for. */
  asked = 0;
  port = 0;
  readonly #server: Server;
  readonly #sockets = new Set<{ destroy(): unknown }>();

  private constructor(options: TlsFrontOptions) {
    this.options = options;
    const { certPem, keyPem } = options;
    this.#server = createTlsServer({ cert: certPem, key: keyPem, ALPNProtocols: ["h2", "http/1.1"] });
    this.#server.on("secureConnection", (socket) => {
      this.#hold(socket);
      if (socket.alpnProtocol === "h2") this.#pass(socket);
      else this.#answer(socket);
    });
    // A client that does not trust it leaves in the middle of the handshake.
    this.#server.on("tlsClientError", () => {});
  }

  static async listen(options: TlsFrontOptions): Promise<TlsFront> {
    const front = new TlsFront(options);
    front.port = await listening(front.#server, options.host);
    return front;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(socket: TLSSocket): void {
    this.passed += 1;
    const inner = connect(this.options.to, "127.0.0.1");
    this.#hold(inner);
    socket.pipe(inner).pipe(socket);
    inner.on("close", () => socket.destroy());
    socket.on("close", () => inner.destroy());
  }

  #answer(socket: TLSSocket): void {
    socket.once("data", () => {
      this.asked += 1;
      const { served } = this.options;
      const status = served === null ? "404 Not Found" : "200 OK";
      socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n${served ?? ""}`);
    });
  }

  #hold(socket: TLSSocket | ReturnType<typeof connect>): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }
}
