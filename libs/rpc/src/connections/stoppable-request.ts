import http from "node:http";
import { held } from "./connection.ts";

/**
 * An HTTP/1.1 request (the `IncomingMessage` of a server's options) that stops the parser once its connection is cut.
 * Without this, Node.js parses a whole packet before it does anything else: 1,500 pipelined requests in 64 KiB take
 * 40 to 60 ms. Node.js stops parsing a packet after an upgrade request. So requests on a cut connection claim to be
 * upgrades. Nothing listens for upgrades, so the parser is released.
 */
export class StoppableRequest extends http.IncomingMessage {
  // Declare the field without a value: an initializer would run after Node.js has set `upgrade` in its constructor.
  declare isUpgrade: unknown;

  get upgrade(): unknown {
    return isCut(this.socket) || this.isUpgrade;
  }

  set upgrade(isUpgrade: unknown) {
    this.isUpgrade = isUpgrade;
  }
}

/**
 * Whether the connection of a request is cut. Over TLS, the request's socket outlives the underlying connection by
 * one iteration of the event loop.
 */
function isCut(socket: http.IncomingMessage["socket"]): boolean {
  return socket.destroyed || held(socket)?.socket.destroyed === true;
}
