import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Which connections a proxy breaks. */
export interface Cuts {
  /** How many; later ones pass. */
  readonly count: number;
  /** After how many bytes of answers each is broken. */
  readonly nextBytes: () => number;
}

/** A proxy before one port of this machine, that breaks connections in the middle of what they carry. */
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

  /** Connections that it has broken. */
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
      // What breaks one side ends the other.
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
      // One that does not read is not read for.
      if (!client.write(piece.subarray(0, Math.min(piece.length, room)))) {
        upstream.pause();
        client.once("drain", () => upstream.resume());
      }
      room -= piece.length;
      if (room > 0 || this.#left === 0) return;
      this.#left -= 1;
      this.#made += 1;
      upstream.destroy();
      // In turns as a path breaks, and as a proxy that is stopped ends what it has.
      if (this.#made % 2 === 0) client.resetAndDestroy();
      else client.end();
    });
  }
}
