import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { expect } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { eventually } from "@rollcall/testkit";
import type { Rig } from "./rig.ts";

/** A server's stream, as a client of the drills drives it. */
export interface Streaming<M> {
  /** Open it over a connection of its own: after a token, or, without one, from its beginning. */
  open(transport: Transport, resumeToken: string | null, signal: AbortSignal): AsyncIterable<M>;
  /** Take in a message. Whether it was the last one that matters. */
  keep(message: M): boolean;
  /** Called with each message that was kept but the last; may hold up reading. */
  onMessage?(): void | Promise<void>;
}

/** A client of a watch that goes on from its last token, over a new connection, whatever breaks. */
export class ResumingStream<M extends { readonly resumeToken: string }> {
  /** Reasons of all ends so far. */
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
        // The server may be away: others get their turn before it is tried again.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Leave this stream; run() comes back with another. */
  leave(): void {
    this.#leaving.abort();
  }

  /** Stop watching, whatever has not come yet. */
  close(): void {
    this.#isClosed = true;
    this.leave();
    this.breakConnection();
  }

  /** End the connection under the stream. */
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
 * Reads slowly: holds each stream up once, until `steady` is `ahead` further, and goes on until it was cut for that. To
 * hold up every message that was on its way would take as many again for each.
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
