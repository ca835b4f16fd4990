import http from "node:http";
import { held } from "./connection.ts";

/**
 * A request of HTTP/1.1 (`IncomingMessage` of a server's options) behind which nothing more is parsed once its
 * connection was cut. Node.js parses all that a packet holds before it does anything else: 1,500 pipelined requests in
 * 64 KiB, 40 to 60 ms. A request that upgrades is the last that it takes from a packet, so those of a connection that
 * was cut say that they do. Nothing listens for upgrades: the parser is let go.
 */
export class StoppableRequest extends http.IncomingMessage {
  // A field would be made after Node.js has set `upgrade` in its own constructor.
  declare isUpgrade: unknown;

  get upgrade(): unknown {
    return isCut(this.socket) || this.isUpgrade;
  }

  set upgrade(isUpgrade: unknown) {
    this.isUpgrade = isUpgrade;
  }
}

/** Over TLS the socket of a request outlives the connection that carries it by a turn. */
function isCut(socket: http.IncomingMessage["socket"]): boolean {
  return socket.destroyed || held(socket)?.socket.destroyed === true;
}
