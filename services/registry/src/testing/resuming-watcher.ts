import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import {
  type Event,
  EventService,
  type WatchEventsRequest,
  type WatchEventsResponse,
} from "@rollcall/api/rollcall/events/v1/events_pb";
import { describeError } from "@rollcall/runtime";
import type { Rig } from "./rig.ts";

type Start = WatchEventsRequest["start"];

/** How a client of the drill behaves. */
export interface Behaviour {
  readonly name: string;
  readonly filter?: {
    readonly types?: string[];
    readonly subject?: string;
    readonly actor?: string;
  };
  /** Called with each message that was kept; may hold up reading. */
  readonly onMessage?: (watcher: ResumingWatcher, messages: number) => void | Promise<void>;
}

/**
 * A client that watches from the beginning of the log over a connection of its own, and whatever breaks goes on from its
 * last token. It checks what a message promises as it comes, and keeps all events.
 */
export class ResumingWatcher {
  readonly behaviour: Behaviour;
  readonly events: Event[] = [];
  /** What a message said, with the number of events that had come by then. */
  readonly marks: { readonly revision: bigint; readonly count: number }[] = [];
  /** Reasons of all ends so far. */
  readonly ends: string[] = [];
  readonly #rig: () => Rig;
  #sessions: Http2SessionManager | null = null;
  #leaving = new AbortController();
  #isDone = false;

  constructor(rig: () => Rig, behaviour: Behaviour) {
    this.#rig = rig;
    this.behaviour = behaviour;
  }

  /** Watch until `isLast` is true of an event, or stop() is called. */
  async run(isLast: (event: Event) => boolean): Promise<void> {
    let start: Start = { case: "fromBeginning", value: true };
    while (!this.#isDone) {
      this.#leaving = new AbortController();
      try {
        for await (const message of this.#open(start)) {
          start = { case: "resumeToken", value: message.resumeToken };
          this.#keep(message);
          if (message.events.some(isLast)) return this.breakConnection();
          await this.behaviour.onMessage?.(this, this.marks.length);
        }
        this.ends.push("END");
      } catch (error) {
        start = this.#afterEnd(error) ?? start;
        // The server may be away: others get their turn before it is tried again.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Leave this stream; run() comes back with another. */
  leave(): void {
    this.#leaving.abort();
  }

  /** End the connection under the stream. */
  breakConnection(): void {
    this.#sessions?.abort();
    this.#sessions = null;
  }

  stop(): void {
    this.#isDone = true;
    this.breakConnection();
  }

  #open(start: Start): AsyncIterable<WatchEventsResponse> {
    const call = { signal: this.#leaving.signal, timeoutMs: 0 };
    return this.#client().watchEvents({ start, ...this.behaviour.filter }, call);
  }

  #client(): Client<typeof EventService> {
    const { baseUrl, token } = this.#rig();
    this.breakConnection();
    this.#sessions = new Http2SessionManager(baseUrl);
    const transport = createGrpcTransport({
      baseUrl,
      sessionManager: this.#sessions,
      interceptors: [
        (next) => (request) => {
          request.header.set("authorization", `Bearer ${token}`);
          return next(request);
        },
      ],
    });
    return createClient(EventService, transport);
  }

  #keep({ events, revision }: WatchEventsResponse): void {
    this.events.push(...events);
    this.marks.push({ revision, count: this.events.length });
  }

  #afterEnd(error: unknown): Start | null {
    const { reason, metadata } = describeError(error);
    this.ends.push(reason ?? Code[ConnectError.from(error).code]);
    const value = metadata.resumeToken;
    return value === undefined ? null : { case: "resumeToken", value };
  }
}
