import type net from "node:net";

/** The undocumented part of a socket's handle that Node.js uses to pause its own streams. */
interface Handle {
  /** Whether Node.js is reading from the handle. */
  readonly reading?: boolean;
  readStop?(): unknown;
  readStart?(): unknown;
}

interface Reading {
  readonly address: string;
  /** The socket that the kernel delivers to, even under TLS. */
  readonly socket: net.Socket;
}

/** The connections of an address that are not read at the moment. */
interface Row<C> {
  readonly held: Set<C>;
  /** How many of these connections to read in the next iteration. */
  share: number;
}

/**
 * Makes the connections of an address take turns to be read. Node.js processes a whole packet, which can contain
 * hundreds of calls, before any of our code can intervene. If several such connections were ready in one iteration
 * of the event loop, they would block everything else. So after a burst, only one connection is read in the next
 * iteration, and the number doubles with each iteration until there is another burst. An HTTP/2 session cannot be
 * paused, so this pauses the handle of its socket.
 */
export class FairReading<C extends Reading> {
  readonly #rows = new Map<string, Row<C>>();

  /**
   * Stop reading the connections of an address that caused much work in this iteration, until it is their turn.
   */
  hold(address: string, connections: Iterable<C>): void {
    let row = this.#rows.get(address);
    if (row === undefined) {
      row = { held: new Set(), share: 1 };
      this.#rows.set(address, row);
      this.#goOn(address, row);
    }
    row.share = 1;
    for (const connection of connections) {
      const handle = handleOf(connection.socket);
      // Skip a handle that Node.js itself has paused, because Node.js will also resume it.
      if (row.held.has(connection) || handle?.reading !== true) continue;
      handle.readStop?.();
      row.held.add(connection);
    }
  }

  /** Forget a closed connection. */
  leave(connection: C): void {
    this.#rows.get(connection.address)?.held.delete(connection);
  }

  #goOn(address: string, row: Row<C>): void {
    setImmediate(() => {
      let left = row.share;
      for (const next of row.held) {
        if (left === 0) break;
        left -= 1;
        row.held.delete(next);
        handleOf(next.socket)?.readStart?.();
      }
      row.share *= 2;
      if (row.held.size > 0) this.#goOn(address, row);
      else this.#rows.delete(address);
    });
  }
}

function handleOf(socket: net.Socket): Handle | null {
  return Reflect.get(socket, "_handle");
}
