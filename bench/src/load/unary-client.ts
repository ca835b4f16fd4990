import { Http2Connection } from "./http2-connection.ts";
import { messageFrame } from "./http2-frames.ts";
import type { ConnectTarget } from "./open-socket.ts";

/** Makes unary gRPC calls, one after the other, on one hand-written connection. */
export class UnaryClient {
  readonly #connection: Http2Connection;
  readonly #headers: Readonly<Record<string, string>>;
  #answer: Buffer | null = null;
  #settle: { resolve(answer: Buffer): void; reject(error: Error): void } | null = null;

  /** @param headers the headers of every call, with names in lower case. */
  constructor(target: ConnectTarget, headers: Readonly<Record<string, string>> = {}) {
    this.#headers = headers;
    this.#connection = new Http2Connection(target, {
      onMessage: (_streamId, message) => {
        // Copy the message, because the socket reuses its bytes.
        this.#answer = Buffer.from(message);
      },
      onStreamEnd: () => this.#end("the call was refused"),
      onClose: () => this.#end("the connection is closed"),
    });
  }

  get ready(): Promise<void> {
    return this.#connection.ready;
  }

  /**
   * Calls a method with an encoded request and returns the encoded response. Rejects if the server sends no
   * response.
   */
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
