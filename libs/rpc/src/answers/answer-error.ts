import { constants } from "node:http2";
import type { Readable } from "node:stream";
import type { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, endStreamFlag, endStreamToJson, errorToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { mapError } from "@rollcall/errors";
import { closeAnswered, type HttpRequest, type HttpResponse, writeHead } from "../calls/http-handler.ts";

/**
 * Answer a call with an error, in the protocol of the caller, without reading more of the request. Errors are converted
 * as mapError() does, here and below.
 */
export function refuseCall(request: HttpRequest, response: HttpResponse, error: unknown): void {
  if (isGrpc(request)) {
    answerGrpcError(request, response, error);
    return;
  }
  finishRequest(request, response);
  if (isConnectStream(request)) answerConnectStreamError(request, response, error);
  else answerConnectError(request, response, error);
}

/** The headers of an error that name the encodings that the server accepts. No other metadata is sent here. */
function acceptedEncodings({ metadata }: ConnectError): Record<string, string> {
  return Object.fromEntries([...metadata].filter(([name]) => name.endsWith("accept-encoding")));
}

/**
 * Answer a gRPC or gRPC-Web call with an error. A response without messages can consist of headers only, if they end
 * the response.
 */
export function answerGrpcError(request: HttpRequest, response: HttpResponse, error: unknown, httpStatus = 200): void {
  const mapped = mapError(error);
  const headers = { ...acceptedEncodings(mapped), "content-type": request.headers["content-type"] ?? "" };
  Object.assign(headers, Object.fromEntries(setTrailerStatus(new Headers(), mapped)));
  if ("stream" in response) {
    // Return early if the caller has disconnected, because respond() would throw.
    if (response.stream.destroyed || response.stream.closed) return;
    // Do not use Node's compatibility layer: it would add an empty data frame, and grpc-js would then wait for
    // trailers.
    response.stream.respond({ ":status": httpStatus, ...headers }, { endStream: true });
    closeAnswered(response.stream);
    return;
  }
  sendWhole(request, response, httpStatus, headers, "");
}

/** Answer with an error in the format of Connect's unary calls, which any program that reads JSON understands. */
export function answerConnectError(
  request: HttpRequest,
  response: HttpResponse,
  error: unknown,
  status?: number,
): void {
  const mapped = mapError(error);
  const body = JSON.stringify(errorToJson(mapped, undefined));
  const headers = { ...acceptedEncodings(mapped), "content-type": "application/json" };
  sendWhole(request, response, status ?? codeToHttpStatus(mapped.code), headers, body);
}

/**
 * Answer with an error in the format of Connect's streams. The frame that ends the stream contains the error, and the
 * HTTP status is always 200.
 */
function answerConnectStreamError(request: HttpRequest, response: HttpResponse, error: unknown): void {
  const mapped = mapError(error);
  const end = JSON.stringify(endStreamToJson(new Headers(), mapped, undefined));
  const type = request.headers["content-type"] ?? "";
  const frame = encodeEnvelope(endStreamFlag, Buffer.from(end));
  sendWhole(request, response, 200, { ...acceptedEncodings(mapped), "content-type": type }, frame);
}

/** Send a complete response immediately, without waiting for the rest of the request. */
export function sendWhole(
  request: HttpRequest,
  response: HttpResponse,
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): void {
  // Discard the rest of the request, so that it does not fill the connection's window.
  request.resume();
  writeHead(response, status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}

function isConnectStream(request: HttpRequest): boolean {
  return /^application\/connect\+/.test(request.headers["content-type"] ?? "");
}

/** Whether a request uses gRPC-Web. */
export function isGrpcWeb(request: HttpRequest): boolean {
  return /^application\/grpc-web/.test(request.headers["content-type"] ?? "");
}

/** Whether a request uses gRPC or gRPC-Web. */
export function isGrpc(request: HttpRequest): boolean {
  return /^application\/grpc/.test(request.headers["content-type"] ?? "");
}

/**
 * Discard the rest of a request once the response is complete. On HTTP/2, the caller is notified that the rest is not
 * needed (RST_STREAM, NO_ERROR). HTTP/1.1 has no such signal, so the rest is read and dropped, and the connection can
 * be reused. Without this, the call would stay half open and keep its connection from closing.
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
      // Read the data that has already arrived. Otherwise the stream would never end.
      drop(stream, "data");
    });
  });
}

/** Discard the rest of a body that was read in part. Without its listener, the body flows. */
function drop(readable: Pick<Readable, "removeAllListeners" | "resume">, listened: "readable" | "data"): void {
  readable.removeAllListeners(listened);
  // Wait one tick, because only then does the stream notice that its "readable" listener is gone.
  setImmediate(() => readable.resume());
}
