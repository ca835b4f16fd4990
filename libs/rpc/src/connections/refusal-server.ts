import http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import type { RefusalError } from "@rollcall/errors";
import { answerConnectError, answerGrpcError, finishRequest, isGrpc } from "../answers/answer-error.ts";
import type { HttpHandler, HttpRequest } from "../calls/http-handler.ts";
import { handToHttp2 } from "./hand-over.ts";

/**
 * How long to read further data of the client, such as its settings, after the refusal, in milliseconds. A closed
 * socket would answer this data with a reset, and the reset would discard the refusal before the client has read it.
 */
const LINGER_MS = 500;

/**
 * How long to wait for the rest of an HTTP/2 request, in milliseconds. A stream of frames may never end, and an early
 * response does no harm.
 */
const REQUEST_MS = 250;

/**
 * How long to wait for the rest of an HTTP/1.1 request, in milliseconds. The response closes the connection, and a
 * program that has just started may need time to send the body.
 */
const REQUEST_HTTP1_MS = 2_000;

/** When to close the connection of a refused client, in milliseconds, even if the client sends more. */
const LAST_WORDS_MS = 5_000;

/**
 * Answers every call on a connection with the same refusal, in the protocol of the caller, and closes the connection.
 * So the user reads what to do instead of "connection reset". No method can be called through it. A connection without
 * a call is cut after 5 s.
 */
export class RefusalServer {
  readonly #http1: http.Server;
  readonly #http2: http2.Http2Server;

  constructor(error: () => RefusalError) {
    const refuseCall: HttpHandler = (request, response) => {
      finishRequest(request, response);
      const limitMs = request.httpVersionMajor === 1 ? REQUEST_HTTP1_MS : REQUEST_MS;
      afterRequest(request, limitMs, () => {
        if (isGrpc(request)) answerGrpcError(request, response, error());
        else answerConnectError(request, response, error());
      });
    };
    this.#http1 = http.createServer((request, response) => {
      response.setHeader("connection", "close");
      refuseCall(request, response);
    });
    this.#http2 = http2.createServer((request, response) => {
      response.once("close", () => closeLater(request.stream.session));
      refuseCall(request, response);
    });
    this.#http2.on("session", (session) => session.on("error", () => {}));
  }

  /** Take over a connection. Bytes that were read from it have been put back. */
  serve(socket: net.Socket, isHttp2: boolean): void {
    const timer = setTimeout(() => socket.destroy(), LAST_WORDS_MS);
    socket.once("close", () => clearTimeout(timer));
    if (isHttp2) {
      handToHttp2(this.#http2, socket, () => this.#http2.emit("connection", socket));
      return;
    }
    this.#http1.emit("connection", socket);
    socket.resume();
  }
}

/**
 * Answer after the request has arrived, or after `limitMs` if it does not end. A client that gets the response while it
 * still writes might report its failed write instead.
 */
function afterRequest(request: HttpRequest, limitMs: number, answer: () => void): void {
  const settle = () => {
    forget();
    answer();
  };
  const timer = setTimeout(settle, limitMs);
  const forget = () => {
    clearTimeout(timer);
    request.off("end", settle).off("close", forget);
  };
  request.on("end", settle).on("close", forget);
  request.resume();
}

function closeLater(session: http2.Http2Session | undefined): void {
  if (session === undefined) return;
  const timer = setTimeout(() => session.close(), LINGER_MS);
  session.once("close", () => clearTimeout(timer));
}
