import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { until } from "../../../libs/testkit/src/time.ts";

/**
 * Which requests to hold, and when: before the engine receives the request, or before the client receives
 * the response.
 */
export interface Hold {
  readonly when: "before" | "after";
  readonly method: string;
  readonly path: RegExp;
}

/** A proxy between a keeper and its engine that can hold one kind of request or response. */
export class EngineProxy {
  readonly #server: Server;
  readonly #enginePath: string;
  #hold: Hold | null = null;
  #held = 0;
  #kept: (() => void)[] = [];

  private constructor(enginePath: string) {
    this.#enginePath = enginePath;
    this.#server = createServer((incoming, outgoing) => this.#pass(incoming, outgoing));
  }

  static async listen(path: string, enginePath: string): Promise<EngineProxy> {
    const proxy = new EngineProxy(enginePath);
    await new Promise<void>((resolve) => proxy.#server.listen(path, resolve));
    return proxy;
  }

  /** Hold requests of this kind. Null holds no requests. */
  hold(hold: Hold | null): void {
    this.#hold = hold;
    this.#held = 0;
    this.#kept = [];
  }

  /** Stop holding, and forward the requests that were held on their way to the engine. */
  release(): void {
    const kept = this.#kept;
    this.hold(null);
    for (const pass of kept) pass();
  }

  /** Wait until a request is held. */
  async caught(): Promise<void> {
    await until("a request that is held", () => this.#held > 0);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const hold = this.#hold;
    const isHeld = hold !== null && incoming.method === hold.method && hold.path.test(incoming.url ?? "");
    if (isHeld && hold.when === "before") {
      this.#kept.push(() => this.#pass(incoming, outgoing));
      this.#held += 1;
      return;
    }
    const { method, url, headers } = incoming;
    const passed = request({ socketPath: this.#enginePath, method, path: url, headers }, (answer) => {
      if (isHeld) {
        answer.resume();
        answer.once("end", () => {
          this.#held += 1;
        });
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
      outgoing.on("close", () => answer.destroy());
    });
    passed.on("error", () => outgoing.destroy());
    incoming.pipe(passed);
  }
}
