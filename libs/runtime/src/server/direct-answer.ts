import type { Http2ServerResponse } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { writeEnvelope } from "./grpc-envelope.ts";

/** The answer to one call of gRPC over HTTP/2: headers once, messages, and the status in the trailers. */
export class DirectAnswer {
  readonly #response: Http2ServerResponse;
  #begun = false;

  constructor(response: Http2ServerResponse) {
    this.#response = response;
  }

  /** Whether nobody reads any more. */
  get isLeft(): boolean {
    const { stream } = this.#response;
    return stream.closed || stream.destroyed;
  }

  /** Send the headers, unless they were sent. */
  begin(header: Headers): void {
    if (this.#begun || this.isLeft) return;
    this.#begun = true;
    this.#response.writeHead(200, {
      ...Object.fromEntries(header),
      "content-type": "application/grpc+proto",
    });
  }

  /** Send a message. A promise when the reader is slower than its writer: then wait for it. */
  send(message: Uint8Array): Promise<void> | undefined {
    if (this.isLeft || this.#response.write(writeEnvelope(message))) return undefined;
    return new Promise((resolve) => {
      const { stream } = this.#response;
      const go = () => {
        stream.off("drain", go);
        stream.off("close", go);
        resolve();
      };
      stream.on("drain", go);
      stream.on("close", go);
    });
  }

  /** Send the status, and end. */
  end(header: Headers, trailer: Headers, error?: ConnectError): void {
    this.begin(header);
    if (this.isLeft) return;
    setTrailerStatus(trailer, error);
    this.#response.addTrailers(Object.fromEntries(trailer));
    this.#response.end();
  }
}
