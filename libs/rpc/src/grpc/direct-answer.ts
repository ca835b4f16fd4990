import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import { piecesOf } from "../limits/answer-pieces.ts";
import { beginAnswer, headerList, trailersOf } from "./grpc-envelope.ts";

/** The headers of a response, as the interceptors and the implementation have set them. */
export interface AnswerHeaders {
  readonly responseTrailer: Headers;
  /** Return the initial headers for sending, and forget them. */
  takeHeader(): Headers;
}

/** The response to one gRPC call over HTTP/2: the headers, the messages, and the status in the trailers. */
export class DirectAnswer {
  readonly #response: Http2ServerResponse;
  #begun = false;
  #messages = 0;

  constructor(response: Http2ServerResponse) {
    this.#response = response;
  }

  /** Whether the caller has disconnected. */
  get isLeft(): boolean {
    const { stream } = this.#response;
    return stream.closed || stream.destroyed;
  }

  /** Send the headers, unless they have already been sent. */
  begin(headers: AnswerHeaders): void {
    if (this.#begun || this.isLeft) return;
    const { stream } = this.#response;
    // Use the stream, because the response object would keep the headers for as long as the call lasts.
    beginAnswer(stream, headerList({ ...Object.fromEntries(headers.takeHeader()), ...HEADERS }));
    // Set this afterwards, because beginAnswer() throws if HTTP/2 forbids one of the headers. In that case, the
    // response starts with the error.
    this.#begun = true;
  }

  /** Send a framed message. Returns a promise to wait for if the reader is slower than the writer. */
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

  /** Send the status and end the response. */
  end(headers: AnswerHeaders, error?: ConnectError): void {
    this.begin(headers);
    if (this.isLeft) return;
    this.#response.addTrailers(trailersOf(error ?? null, Object.fromEntries(headers.responseTrailer)));
    this.#response.end();
    if (this.#messages <= 1) endWithLastWrite(this.#response.stream);
  }
}

const HEADERS = { ":status": 200, "content-type": "application/grpc+proto" } as const;

/**
 * Send the trailers in the same packet as the last message. By default, Node.js ends a stream with trailers only after
 * its last write has been sent. Each response would then take two packets, and both sides would use a fifth more CPU.
 * Node.js later ends the stream again, which is harmless. Use this only for a stream with an empty buffer, because
 * buffered data would be lost.
 */
function endWithLastWrite(stream: ServerHttp2Stream): void {
  stream._final(() => {});
}
