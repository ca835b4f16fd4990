import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Forwards connections until it falls silent. After that, open connections stay open but carry no data. */
export class SilentProxy {
  accepted = 0;
  /** The number of connections that the client has open. */
  open = 0;
  address = "";
  #silenced = 0;
  /** @type {Set<import("node:net").Socket>} */
  #sockets = new Set();
  #server = createServer();

  /** @param {number} port */
  async start(port) {
    this.#server.on("connection", (client) => {
      this.accepted += 1;
      this.open += 1;
      client.once("close", () => {
        this.open -= 1;
      });
      const number = this.accepted;
      const upstream = connect(port, "127.0.0.1");
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ]) {
        this.#sockets.add(from);
        from.on("error", () => {});
        from.on("data", (data) => number > this.#silenced && to.write(data));
        from.once("close", () => to.destroy());
      }
    });
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port: own } = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    this.address = `127.0.0.1:${own}`;
  }

  fallSilent() {
    this.#silenced = this.accepted;
  }

  close() {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
