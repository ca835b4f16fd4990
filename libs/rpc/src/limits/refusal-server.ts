import http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import type { ConnectError } from "@connectrpc/connect";
import type { HttpHandler, HttpRequest } from "../calls/http-handler.ts";
import { answerConnectError, answerGrpcError, finishRequest, isGrpc } from "../connect/answer-error.ts";
import { handToHttp2 } from "../connections/hand-over.ts";

/**
 * What a client still sends on its own account, such as its settings, must be read: a socket that
 * was closed answers it with a reset, which takes the refusal along that the client has not read yet.
 */
const LINGER_MS = 500;

/**
 * How long the rest of a request of HTTP/2 is waited for: a stream of frames never ends, and one that is answered early
 * does no harm.
 */
const REQUEST_MS = 250;

/**
 * Over HTTP/1.1 the answer ends the connection, and a program that has only just started may take its time to send the
 * body.
 */
const REQUEST_HTTP1_MS = 2_000;

/** A refused client has nothing further to send. */
const LAST_WORDS_MS = 5_000;

/**
 * Answers every call of a connection with the same refusal, in the caller's own protocol, and ends it: its user reads
 * what to do instead of "connection reset". Nothing else is reached from here. A connection without a call is cut after
 * 5 s.
 */
export class RefusalServer {
  readonly #http1: http.Server;
  readonly #http2: http2.Http2Server;

  constructor(error: () => ConnectError) {
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

  /** Take over a connection. What was read of it has been put back. */
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
 * A client that is answered while it still writes may take its broken write for the answer. One that never ends is
 * answered all the same.
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
