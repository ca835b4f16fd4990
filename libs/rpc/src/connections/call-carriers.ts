import type http2 from "node:http2";
import { type Connection, grpcPeerOf, held } from "./connection.ts";

interface Carrier {
  readonly connection: Connection;
  /** Noted calls that are open. */
  calls: number;
}

/**
 * The connections of the calls that grpc-js serves, which names the peer of a call but keeps its stream to itself. A
 * connection is kept here only while it has such a call: agents that only beat cost nothing.
 */
export class CallCarriers {
  readonly #byPeer = new Map<string, Carrier>();

  /** Note a call until it closes. Its stream must be open. */
  add(stream: http2.ServerHttp2Stream): void {
    const connection = held(stream);
    if (connection === undefined) return;
    // Read now: once the socket is gone it may not know its peer.
    const peer = grpcPeerOf(connection.socket);
    const known = this.#byPeer.get(peer);
    const carrier = known?.connection === connection ? known : { connection, calls: 0 };
    if (carrier !== known) this.#byPeer.set(peer, carrier);
    carrier.calls += 1;
    stream.once("close", () => {
      carrier.calls -= 1;
      // The same port of the peer may have another connection by then.
      if (carrier.calls === 0 && this.#byPeer.get(peer) === carrier) this.#byPeer.delete(peer);
    });
  }

  /** The connection that carries an open call. @param peer as getPeer() of the call names it. */
  find(peer: string): Connection | undefined {
    return this.#byPeer.get(peer)?.connection;
  }
}
