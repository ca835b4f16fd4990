import { connect } from "node:net";
import { createServer as createTlsServer, type Server, type TLSSocket } from "node:tls";
import { listening } from "./listening.ts";

/**
 * The options of a front: its certificate, the authority that it serves, and the port that it
 * forwards to.
 */
export interface TlsFrontOptions {
  /** The certificate chain and the key. */
  readonly certPem: string;
  readonly keyPem: string;
  /** The response to GET /ca.pem; null for 404. */
  served: string | null;
  /** The clear-text port on this machine that HTTP/2 is forwarded to. */
  readonly to: number;
  readonly host?: string;
}

/** Terminates TLS in front of a fake server that has none. */
export class TlsFront {
  readonly options: TlsFrontOptions;
  /** The number of HTTP/2 connections that completed the handshake. */
  passed = 0;
  /** The number of requests for the authority. */
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
    // Ignore errors, because a client that does not trust the certificate disconnects during the
    // handshake.
    this.#server.on("tlsClientError", () => {});
  }

  static async listen(options: TlsFrontOptions): Promise<TlsFront> {
    const front = new TlsFront(options);
    front.port = await listening(front.#server, options.host);
    return front;
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  /** Present another certificate to new connections. */
  show({ certPem, keyPem }: Pick<TlsFrontOptions, "certPem" | "keyPem">): void {
    this.#server.setSecureContext({ cert: certPem, key: keyPem });
  }

  cut(): void {
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
