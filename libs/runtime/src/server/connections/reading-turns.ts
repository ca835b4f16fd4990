import type net from "node:net";

/** What Node.js keeps of a connection's handle to itself; that it can stop reading is what its own streams are made with. */
interface Handle {
  /** Whether Node.js itself has it read. */
  readonly reading?: boolean;
  readStop?(): unknown;
  readStart?(): unknown;
}

interface Reading {
  readonly address: string;
  /** What the kernel delivers to, also under TLS. */
  readonly socket: net.Socket;
}

/** Those of an address that are not read for now. */
interface Row<C> {
  readonly held: Set<C>;
  /** How many are read from in the next turn. */
  share: number;
}

/**
 * Reads the connections of an address in turns. What one packet brings along is all taken in before anything can be said to it, hundreds of calls;
 * with many connections that are ready at the same time nothing else would be heard for long. After a turn that brought much, one connection is read
 * in the next one, and twice as many in each that follows as long as they bring little. A session of HTTP/2 cannot be paused from outside, hence its
 * handle is.
 */
export class ReadingTurns<C extends Reading> {
  readonly #rows = new Map<string, Row<C>>();

  /** Have connections of an address, which has brought much in this turn, wait for each other. */
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
      // One that Node.js has stopped reading is for Node.js to go on with.
      if (row.held.has(connection) || handle?.reading !== true) continue;
      handle.readStop?.();
      row.held.add(connection);
    }
  }

  /** Forget a connection that is gone. */
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
  return (socket as unknown as { readonly _handle: Handle | null })._handle;
}
