import type { OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Status } from "./call-journal.ts";

/** How the answer to a call of gRPC begins that we serve on HTTP/2 itself. */
export const ANSWER_HEADERS: OutgoingHttpHeaders = Object.freeze({
  ":status": 200,
  "content-type": "application/grpc+proto",
  "grpc-accept-encoding": "identity",
});

/** A status as the trailers of a call. */
export function trailersOf({ code, details, metadata }: Status): OutgoingHttpHeaders {
  return {
    "grpc-status": String(code),
    "grpc-message": encodeURI(details ?? ""),
    ...metadata?.toHttp2Headers(),
  };
}

/** Answer a call with nothing but its status. The stream must be open. */
export function answerWithStatus(stream: ServerHttp2Stream, status: Status): void {
  stream.respond({ ...ANSWER_HEADERS, ...trailersOf(status) }, { endStream: true });
}
