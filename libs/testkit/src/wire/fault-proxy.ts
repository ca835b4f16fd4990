import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * A proxy in front of one TCP port of the loopback interface. On request it goes silent, like a path on which every
 * packet is lost.
 */
export class FaultProxy {
  /** The port of the proxy. Clients connect to it instead. */
  readonly port: number;
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #isSilent = false;
  #answerDelayMs = 0;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    server.on("connection", (client: Socket) => this.#join(client));
  }

  /** Start a proxy in front of a port. It listens on `port` of a loopback address, or on any free port. */
  static async start(target: number, port = 0, host = "127.0.0.1"): Promise<FaultProxy> {
    const server = createServer({ noDelay: true, pauseOnConnect: true });
    server.listen(port, host);
    await once(server, "listening");
    const address = server.address();
    const own = typeof address === "object" && address !== null ? address.port : port;
    return new FaultProxy(server, own, target);
  }

  /** Number of sockets of proxied connections: two for each connection. */
  get sockets(): number {
    return this.#sockets.size;
  }

  /**
   * Stop or resume forwarding. Both sides are paused and nothing is discarded, so no byte that TCP has acknowledged
   * is lost. This is like a path on which packets are dropped. Waiting data arrives after the proxy resumes. New
   * connections are accepted but stay silent.
   */
  silence(isSilent: boolean): void {
    this.#isSilent = isSilent;
    for (const socket of this.#sockets) {
      if (isSilent) socket.pause();
      else socket.resume();
    }
  }

  /** Make the existing connections silent, like a firewall that has lost its state. New connections still work. */
  forget(): void {
    for (const socket of this.#sockets) socket.removeAllListeners("drain").pause();
  }

  /** Delay the server's data by this time, keeping the order; 0 for no delay. */
  delayAnswers(ms: number): void {
    this.#answerDelayMs = ms;
  }

  /** Break every connection. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, "close");
  }

  #join(client: Socket): void {
    const upstream = connect({ host: "127.0.0.1", port: this.#target, noDelay: true });
    this.#pipe(client, upstream);
    this.#pipe(upstream, client, new Delays(() => this.#answerDelayMs));
  }

  /** Forward data without `pipe()`, which would resume streams that were paused on purpose. */
  #pipe(from: Socket, to: Socket, delays: Delays | null = null): void {
    this.#sockets.add(from);
    from.on("data", (chunk: Buffer) => {
      if (delays?.later(() => to.write(chunk)) === true) return;
      // Stop reading while the receiver does not read, so that the sender notices.
      if (!to.write(chunk) && !this.#isSilent) from.pause();
    });
    to.on("drain", () => {
      if (!this.#isSilent) from.resume();
    });
    from.on("end", () => {
      if (delays?.later(() => to.end()) !== true) to.end();
    });
    from.on("error", () => to.destroy());
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    if (this.#isSilent) from.pause();
    else from.resume();
  }
}

/** Data that waits to be forwarded, in order. */
class Delays {
  readonly #delayMs: () => number;
  #waiting = 0;
  #passed: Promise<unknown> = Promise.resolve();

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  /** Whether `pass` will be called later. If not, the caller must forward the data immediately. */
  later(pass: () => void): boolean {
    const delayMs = this.#delayMs();
    if (delayMs === 0 && this.#waiting === 0) return false;
    const dueAtMs = performance.now() + delayMs;
    this.#waiting += 1;
    this.#passed = this.#passed.then(async () => {
      await delay(Math.max(0, dueAtMs - performance.now()));
      this.#waiting -= 1;
      pass();
    });
    return true;
  }
}
