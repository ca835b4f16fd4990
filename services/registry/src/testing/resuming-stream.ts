import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { expect } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { eventually } from "@rollcall/testkit";
import type { Rig } from "./rig.ts";

/** A server stream as the drills' clients use it. */
export interface Streaming<M> {
  /** Open the stream over a separate connection, after a token or from the beginning. */
  open(transport: Transport, resumeToken: string | null, signal: AbortSignal): AsyncIterable<M>;
  /** Process a message. Returns whether it was the last one that matters. */
  keep(message: M): boolean;
  /** Called for each processed message except the last. It can delay reading. */
  onMessage?(): void | Promise<void>;
}

/** A client of a watch that resumes from its last token over a new connection after any failure. */
export class ResumingStream<M extends { readonly resumeToken: string }> {
  /** Why streams have ended so far. */
  readonly ends: string[] = [];
  readonly #rig: () => Rig;
  readonly #streaming: Streaming<M>;
  #sessions: Http2SessionManager | null = null;
  #leaving = new AbortController();
  #isClosed = false;

  constructor(rig: () => Rig, streaming: Streaming<M>) {
    this.#rig = rig;
    this.#streaming = streaming;
  }

  /** Watch until the last message. */
  async run(): Promise<void> {
    const { open, keep, onMessage } = this.#streaming;
    let token: string | null = null;
    while (!this.#isClosed) {
      this.#leaving = new AbortController();
      try {
        for await (const message of open(this.#transport(), token, this.#leaving.signal)) {
          token = message.resumeToken;
          if (keep(message)) return this.breakConnection();
          await onMessage?.();
        }
        this.ends.push("END");
      } catch (error) {
        token = this.#afterEnd(error) ?? token;
        // Let others run before the retry, because the server may be unavailable.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Leave this stream; run() opens another. */
  leave(): void {
    this.#leaving.abort();
  }

  /** Stop watching, even if messages are missing. */
  close(): void {
    this.#isClosed = true;
    this.leave();
    this.breakConnection();
  }

  /** Close the connection under the stream. */
  breakConnection(): void {
    this.#sessions?.abort();
    this.#sessions = null;
  }

  #transport(): Transport {
    const { baseUrl, token } = this.#rig();
    this.breakConnection();
    this.#sessions = new Http2SessionManager(baseUrl);
    return createGrpcTransport({
      baseUrl,
      sessionManager: this.#sessions,
      interceptors: [
        (next) => (request) => {
          request.header.set("authorization", `Bearer ${token}`);
          return next(request);
        },
      ],
    });
  }

  #afterEnd(error: unknown): string | null {
    const { reason, metadata } = describeError(error);
    this.ends.push(reason ?? Code[ConnectError.from(error).code]);
    return metadata.resumeToken ?? null;
  }
}

/**
 * Read slowly: pause once per stream until `steady` has advanced by more than `ahead`. After the server has ended a
 * stream with WATCHER_TOO_SLOW, do not pause again. Pausing at every message would also pause at each buffered
 * message, until `steady` has advanced by another `ahead`.
 */
export function holdUp(
  steady: () => bigint,
  ahead: bigint,
): (watcher: { readonly ends: readonly string[] }) => Promise<void> {
  let held = 0;
  return async ({ ends }) => {
    if (held > ends.length || ends.includes("WATCHER_TOO_SLOW")) return;
    held = ends.length + 1;
    const from = steady();
    await eventually(() => expect(steady()).toBeGreaterThan(from + ahead));
  };
}
