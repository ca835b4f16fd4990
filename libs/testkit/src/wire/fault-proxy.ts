import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * A proxy before one TCP port of the loopback interface. Told to, it goes silent as a path does on which every packet
 * is lost.
 */
export class FaultProxy {
  /** Where to connect instead. */
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

  /** Listen before a port; on `port`, or on any free one, of an address of the loopback interface. */
  static async start(target: number, port = 0, host = "127.0.0.1"): Promise<FaultProxy> {
    const server = createServer({ noDelay: true, pauseOnConnect: true });
    server.listen(port, host);
    await once(server, "listening");
    const address = server.address();
    const own = typeof address === "object" && address !== null ? address.port : port;
    return new FaultProxy(server, own, target);
  }

  /** Connections that pass through, both sides of each. */
  get sockets(): number {
    return this.#sockets.size;
  }

  /**
   * Let nothing through any more, or again. Both sides are paused and nothing is thrown away: no byte that TCP has
   * acknowledged is lost, as on a path whose packets are dropped. What waits arrives when it goes on. New connections
   * are taken and stay silent.
   */
  silence(isSilent: boolean): void {
    this.#isSilent = isSilent;
    for (const socket of this.#sockets) {
      if (isSilent) socket.pause();
      else socket.resume();
    }
  }

  /** Let what the server sends wait for so long, in order; 0 for no longer than it takes. */
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

  /** `pipe()` is not used: it would resume by itself what was paused on purpose. */
  #pipe(from: Socket, to: Socket, delays: Delays | null = null): void {
    this.#sockets.add(from);
    from.on("data", (chunk: Buffer) => {
      if (delays?.later(() => to.write(chunk)) === true) return;
      // One that does not read is not read for: the other side feels it.
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

/** What waits to be passed on, in order. */
class Delays {
  readonly #delayMs: () => number;
  #waiting = 0;
  #passed: Promise<unknown> = Promise.resolve();

  constructor(delayMs: () => number) {
    this.#delayMs = delayMs;
  }

  /** Whether it is passed on later, rather than now by the caller. */
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
