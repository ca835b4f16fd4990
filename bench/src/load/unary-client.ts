import { Http2Connection } from "./http2-connection.ts";
import { messageFrame } from "./http2-frames.ts";
import type { ConnectTarget } from "./open-socket.ts";

/** Unary gRPC calls, one after the other, on one connection by hand. */
export class UnaryClient {
  readonly #connection: Http2Connection;
  readonly #headers: Readonly<Record<string, string>>;
  #answer: Buffer | null = null;
  #settle: { resolve(answer: Buffer): void; reject(error: Error): void } | null = null;

  /** Every call carries these headers, names in lower case. */
  constructor(target: ConnectTarget, headers: Readonly<Record<string, string>> = {}) {
    this.#headers = headers;
    this.#connection = new Http2Connection(target, {
      onMessage: (_streamId, message) => {
        // Copied: the bytes are the socket's, which reads on.
        this.#answer = Buffer.from(message);
      },
      onStreamEnd: () => this.#end("the call was refused"),
      onClose: () => this.#end("the connection is gone"),
    });
  }

  get ready(): Promise<void> {
    return this.#connection.ready;
  }

  /** Calls a method with an encoded request and answers the encoded response. Rejects when the server answers none. */
  call(path: string, request: Uint8Array): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#answer = null;
      this.#settle = { resolve, reject };
      const streamId = this.#connection.openStream(path, this.#headers);
      this.#connection.write(messageFrame(streamId, request, true));
    });
  }

  close(): void {
    this.#connection.close();
  }

  #end(refusal: string): void {
    const settle = this.#settle;
    this.#settle = null;
    if (this.#answer === null) settle?.reject(new Error(refusal));
    else settle?.resolve(this.#answer);
  }
}
