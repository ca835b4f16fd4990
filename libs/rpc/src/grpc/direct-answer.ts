import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { piecesOf } from "../limits/answer-pieces.ts";
import { forgetSentHeaders } from "./grpc-envelope.ts";

/** The headers of an answer, as interceptors and the implementation leave them. */
export interface AnswerHeaders {
  readonly responseTrailer: Headers;
  /** Those that come first, to be sent; they are not kept after that. */
  takeHeader(): Headers;
}

/** The answer to one call of gRPC over HTTP/2: headers once, messages, and the status in the trailers. */
export class DirectAnswer {
  readonly #response: Http2ServerResponse;
  #begun = false;
  #messages = 0;

  constructor(response: Http2ServerResponse) {
    this.#response = response;
  }

  /** Whether the caller has left. */
  get isLeft(): boolean {
    const { stream } = this.#response;
    return stream.closed || stream.destroyed;
  }

  /** Send the headers, unless they were sent. */
  begin(headers: AnswerHeaders): void {
    if (this.#begun || this.isLeft) return;
    const { stream } = this.#response;
    // The response would keep them for as long as the call lasts.
    stream.respond({ ...Object.fromEntries(headers.takeHeader()), ...HEADERS }, { waitForTrailers: true });
    // With headers that HTTP/2 forbids it throws: then the error of that begins the answer.
    this.#begun = true;
    forgetSentHeaders(stream);
  }

  /** Send a framed message. A promise when the reader is slower than its writer: then wait for it. */
  send(frame: Uint8Array): Promise<void> | undefined {
    this.#messages += 1;
    const pieces = piecesOf(frame);
    const [only] = pieces;
    return pieces.length === 1 && only !== undefined ? this.#write(only) : this.#writeAll(pieces);
  }

  async #writeAll(pieces: readonly Uint8Array[]): Promise<void> {
    for (const piece of pieces) await this.#write(piece);
  }

  #write(piece: Uint8Array): Promise<void> | undefined {
    if (this.isLeft || this.#response.write(piece)) return undefined;
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
  end(headers: AnswerHeaders, error?: ConnectError): void {
    this.begin(headers);
    if (this.isLeft) return;
    const trailer = headers.responseTrailer;
    setTrailerStatus(trailer, error);
    this.#response.addTrailers(Object.fromEntries(trailer));
    this.#response.end();
    if (this.#messages <= 1) endWithLastWrite(this.#response.stream);
  }
}

const HEADERS = { ":status": 200, "content-type": "application/grpc+proto" } as const;

/**
 * Let the trailers follow in the same packet. Node.js by itself would end a stream that has trailers only once its last
 * write has gone out, so that each answer took two packets, and both sides a fifth more of CPU. To end it twice does no
 * harm. Only for a stream that holds nothing back: what waits in its buffer would be lost.
 */
function endWithLastWrite(stream: ServerHttp2Stream): void {
  stream._final(() => {});
}
