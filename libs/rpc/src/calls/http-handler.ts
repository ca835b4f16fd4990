import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { KnownCaller } from "@rollcall/identity";

/** A request over HTTP/1.1 or HTTP/2. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;

/** A response over HTTP/1.1 or HTTP/2. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/**
 * Looks at each request before any of it is read. It may put a credential that came in another form into the
 * authorization header. Answers the error of a request that is refused; null for others.
 */
export type RequestDoor = (request: HttpRequest) => ConnectError | null;

/** A call of a method that is not served here. */
export interface ForeignCall {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** As "/rollcall.admin.v1.AccessService/WhoAmI". */
  readonly path: string;
  /** Where it comes from, as HOST:PORT. */
  readonly peer: string;
  /** To be told who calls, once that is known: the call has been counted for its address until then. */
  readonly known: (caller: KnownCaller) => void;
}

/** Takes calls of methods that are served elsewhere; whether it has taken this one. */
export type PassOn = (call: ForeignCall) => boolean;

/** A plain HTTP handler for what is no RPC, for example the console's pages. */
export type HttpHandler = (request: HttpRequest, response: HttpResponse) => void;

/** Write the status and headers of a response. The two classes declare overloads that TypeScript cannot call as one. */
export function writeHead(response: HttpResponse, status: number, headers: OutgoingHttpHeaders = {}): void {
  (response as ServerResponse).writeHead(status, headers);
}

/**
 * Close a stream whose answer was just given, whatever its caller still sends. Not at once: nghttp2 drops an answer
 * that it has not sent when the stream is reset.
 */
export function closeAnswered(stream: ServerHttp2Stream): void {
  setImmediate(() => stream.close());
}
