import type net from "node:net";

/** The undocumented part of a socket's handle that Node.js pauses its own streams with. */
interface Handle {
  /** Whether Node.js is reading from it. */
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
 * Reads the connections of an address in turns. Node.js processes a whole packet, hundreds of calls, before any of our
 * code can object; several such connections ready in the same turn of the event loop would block everything else. After
 * a burst, one connection is read in the next turn, and twice as many in each turn after that until there is another
 * burst. HTTP/2 sessions offer no way to pause reading, so their socket's handle is paused.
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
      // A handle that Node.js has paused is left for Node.js to resume.
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
  return Reflect.get(socket, "_handle");
}
