import { constants } from "node:http2";
import type { Readable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, endStreamFlag, endStreamToJson, errorToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { closeAnswered, type HttpRequest, type HttpResponse, writeHead } from "../calls/http-handler.ts";

/** Answer a call with an error in its caller's protocol, without reading more of it. */
export function refuseCall(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  if (isGrpc(request)) {
    answerGrpcError(request, response, error);
    return;
  }
  finishRequest(request, response);
  if (isConnectStream(request)) answerConnectStreamError(request, response, error);
  else answerConnectError(request, response, error);
}

/** In gRPC and gRPC-Web alike an error without messages may be all in the headers, if the answer ends with them. */
export function answerGrpcError(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  const headers: Record<string, string> = { "content-type": request.headers["content-type"] ?? "" };
  for (const [name, value] of setTrailerStatus(new Headers(), error)) headers[name] = value;
  if ("stream" in response) {
    // respond() throws once the caller has gone.
    if (response.stream.destroyed || response.stream.closed) return;
    // By the compatibility layer an empty frame of data would follow, and grpc-js then waits for trailers.
    response.stream.respond({ ":status": 200, ...headers }, { endStream: true });
    closeAnswered(response.stream);
    return;
  }
  sendWhole(request, response, 200, headers, "");
}

/** As Connect's unary calls have it, which any program that knows JSON can read. */
export function answerConnectError(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  const body = JSON.stringify(errorToJson(error, undefined));
  const status = codeToHttpStatus(error.code);
  sendWhole(request, response, status, { "content-type": "application/json" }, body);
}

/**
 * As Connect's streams have it: the error is in the frame that ends the stream, and the status of HTTP says nothing.
 */
function answerConnectStreamError(request: HttpRequest, response: HttpResponse, error: ConnectError): void {
  const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
  const type = request.headers["content-type"] ?? "";
  const frame = encodeEnvelope(endStreamFlag, Buffer.from(end));
  sendWhole(request, response, 200, { "content-type": type }, frame);
}

/** Answer at once, without waiting for what the caller still sends. */
export function sendWhole(
  request: HttpRequest,
  response: HttpResponse,
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): void {
  // Whatever the caller still sends is not read, and must not fill its connection's window.
  request.resume();
  writeHead(response, status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}

function isConnectStream(request: HttpRequest): boolean {
  return /^application\/connect\+/.test(request.headers["content-type"] ?? "");
}

/** Whether a request is one of gRPC or gRPC-Web. */
export function isGrpc(request: HttpRequest): boolean {
  return /^application\/grpc/.test(request.headers["content-type"] ?? "");
}

/**
 * Once a call has its whole answer while its caller still sends, discard the rest. On HTTP/2 the caller is told that
 * the rest is not wanted (RST_STREAM, NO_ERROR); on HTTP/1.1, which knows no such thing, the rest is read and dropped,
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
  // A stream notices on the next tick that there is no listener for "readable".
  setImmediate(() => readable.resume());
}
