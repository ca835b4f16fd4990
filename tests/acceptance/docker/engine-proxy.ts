import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { until } from "../../../libs/testkit/src/time.ts";

/** A request that is held: before the engine has it, or before its client has the answer. */
export interface Hold {
  readonly when: "before" | "after";
  readonly method: string;
  readonly path: RegExp;
}

/** Stands between a keeper and its engine, and keeps one kind of request or answer back. */
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

  /** Hold requests of this kind; null for none. */
  hold(hold: Hold | null): void {
    this.#hold = hold;
    this.#held = 0;
    this.#kept = [];
  }

  /** Pass on what was held before the engine had it, and hold nothing more. */
  release(): void {
    const kept = this.#kept;
    this.hold(null);
    for (const pass of kept) pass();
  }

  /** Wait until one is held. */
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
