import { type ConnectRouter, createConnectRouter } from "@connectrpc/connect";
import { createFetchHandler } from "@connectrpc/connect/protocol";
import { afterAll, beforeAll } from "@jest/globals";

/** Serve the pages' calls in a test file. A method without an implementation is refused like an unknown method. */
export function serveInTests(routes: (router: ConnectRouter) => void): void {
  const router = createConnectRouter({ grpc: false });
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, createFetchHandler(handler)]));
  const own = globalThis.fetch;
  const answer = (input: Request | URL | string, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, { ...init, duplex: "half" } as RequestInit);
    const handler = handlers.get(new URL(request.url).pathname);
    if (handler === undefined) return Promise.resolve(new Response(null, { status: 404 }));
    return handler(request);
  };
  beforeAll(() => {
    globalThis.fetch = answer as typeof fetch;
  });
  afterAll(() => {
    globalThis.fetch = own;
  });
}

/** A fake of a server's stream. The stream ends when the caller leaves. */
export class FakeStream<M> {
  readonly #first: () => Iterable<M>;
  readonly #readers = new Set<(message: M) => void>();

  /** @param first returns the messages to send when the stream is opened. */
  constructor(first: () => Iterable<M>) {
    this.#first = first;
  }

  /** Send a message to all current readers. */
  send(message: M): void {
    for (const reader of this.#readers) reader(message);
  }

  /** The implementation of the method. */
  async *read(signal: AbortSignal): AsyncGenerator<M> {
    const waiting: M[] = [...this.#first()];
    let wake = () => {};
    const reader = (message: M) => {
      waiting.push(message);
      wake();
    };
    this.#readers.add(reader);
    signal.addEventListener("abort", () => wake());
    try {
      while (!signal.aborted) {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) yield next;
        if (waiting.length > 0 || signal.aborted) continue;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      this.#readers.delete(reader);
    }
  }
}
