import { constants } from "node:http2";
import type { Readable } from "node:stream";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";

/**
 * Once a call has its whole answer while its caller still sends, let go of the rest. On HTTP/2 the caller is told that
 * nobody listens any more (RST_STREAM, NO_ERROR); on HTTP/1.1, which knows no such thing, the rest is read and dropped,
 * and the connection may serve again. Otherwise the call would stay half open and hold up the end of its connection.
 */
export function finishRequest(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in response)) {
    response.once("finish", () => {
      if (!request.complete) drop(request, "readable");
    });
    return;
  }
  const { stream } = response;
  stream.once("wantTrailers", () => {
    if (request.complete) return;
    setImmediate(() => {
      stream.close(constants.NGHTTP2_NO_ERROR);
      // What has arrived already must be read too, or the stream never ends.
      drop(stream, "data");
    });
  });
}

/** A body that was left half read is stuck on its listener: without it, it flows, and is gone. */
function drop(readable: Pick<Readable, "removeAllListeners" | "resume">, listened: "readable" | "data"): void {
  readable.removeAllListeners(listened);
  // A stream notices on the next tick that nobody listens for "readable".
  setImmediate(() => readable.resume());
}
