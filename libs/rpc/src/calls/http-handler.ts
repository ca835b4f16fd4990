import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { RefusalError } from "@rollcall/errors";
import type { IdentifiedCaller } from "@rollcall/identity";

/** A request over HTTP/1.1 or HTTP/2. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;

/** A response over HTTP/1.1 or HTTP/2. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/**
 * Checks each request before any part of it is read. Returns the error if the request is refused, otherwise null. The
 * check can turn another kind of credential, such as a cookie, into an authorization header.
 */
export type RequestCheck = (request: HttpRequest) => RefusalError | null;

/** A call of a method that is not served here. */
export interface ForeignCall {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The path of the method, such as "/rollcall.admin.v1.AccessService/WhoAmI". */
  readonly path: string;
  /** The address that the call comes from, as HOST:PORT. */
  readonly peer: string;
  /** Must be called once the caller is identified. Before that, the call counts towards the limits of its address. */
  readonly known: (caller: IdentifiedCaller) => void;
}

/** Handles a call of a method that is served elsewhere. Returns whether it took the call. */
export type PassOn = (call: ForeignCall) => boolean;

/** A plain HTTP handler for requests that are not RPCs, for example the console's pages. */
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void;

/**
 * Write the status and headers of a response. The cast is needed because TypeScript cannot treat the overloads of the
 * two classes as one function.
 */
export function writeHead(response: HttpResponse, status: number, headers: OutgoingHttpHeaders = {}): void {
  (response as ServerResponse).writeHead(status, headers);
}

/**
 * Close a stream after its response, even if the caller is still sending. This waits one tick, because nghttp2 drops an
 * unsent response when the stream is reset.
 */
export function closeAnswered(stream: ServerHttp2Stream): void {
  setImmediate(() => stream.close());
}
