import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Which connections a proxy breaks. */
export interface Cuts {
  /** The number of connections to break. Later connections stay intact. */
  readonly count: number;
  /** Returns the number of response bytes after which to break the next connection. */
  readonly nextBytes: () => number;
}

/** A proxy in front of a local port that breaks connections while data is transferred. */
export class CuttingProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #left: number;
  #made = 0;

  private constructor(target: number, cuts: Cuts) {
    this.#left = cuts.count;
    this.#server = createServer((client) => this.#join(client, target, cuts));
  }

  static async start(target: number, cuts: Cuts): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, cuts);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The number of broken connections. */
  get made(): number {
    return this.#made;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #join(client: Socket, target: number, { nextBytes }: Cuts): void {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      // Ignore errors, because an error on one side closes the other side.
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    let room = this.#left > 0 ? nextBytes() : Number.POSITIVE_INFINITY;
    upstream.on("data", (piece: Buffer) => {
      if (room <= 0) return;
      // Read only as fast as the client does.
      if (!client.write(piece.subarray(0, Math.min(piece.length, room)))) {
        upstream.pause();
        client.once("drain", () => upstream.resume());
      }
      room -= piece.length;
      if (room > 0 || this.#left === 0) return;
      this.#left -= 1;
      this.#made += 1;
      upstream.destroy();
      // Alternate between a reset, as from a broken path, and an orderly close, as from a proxy that
      // stops.
      if (this.#made % 2 === 0) client.resetAndDestroy();
      else client.end();
    });
  }
}
