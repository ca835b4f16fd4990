import type http2 from "node:http2";
import { type Connection, grpcPeerOf, held } from "./connection.ts";

interface Carrier {
  readonly connection: Connection;
  /** Number of recorded calls on this connection that are open. */
  calls: number;
}

/**
 * The connections of calls that grpc-js serves. grpc-js exposes the peer of a call, but not its stream. A
 * connection is stored only while it has a recorded call, so agents that only send heartbeats cost nothing.
 */
export class CallCarriers {
  readonly #byPeer = new Map<string, Carrier>();

  /** Record a call until it closes. The call's stream must be open. */
  add(stream: http2.ServerHttp2Stream): void {
    const connection = held(stream);
    if (connection === undefined) return;
    // Read the peer now: a closed socket may no longer know it.
    const peer = grpcPeerOf(connection.socket);
    const known = this.#byPeer.get(peer);
    const carrier = known?.connection === connection ? known : { connection, calls: 0 };
    if (carrier !== known) this.#byPeer.set(peer, carrier);
    carrier.calls += 1;
    stream.once("close", () => {
      carrier.calls -= 1;
      // Check that the entry is still this carrier: by now, another connection may use the same port of the
      // peer.
      if (carrier.calls === 0 && this.#byPeer.get(peer) === carrier) this.#byPeer.delete(peer);
    });
  }

  /**
   * Find the connection that carries an open call.
   *
   * @param peer the result of the call's getPeer().
   */
  find(peer: string): Connection | undefined {
    return this.#byPeer.get(peer)?.connection;
  }
}
