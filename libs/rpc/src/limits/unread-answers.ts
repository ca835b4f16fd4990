import { constants, type Http2ServerResponse, type Http2Session } from "node:http2";
import type { ContextValues } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { type Clock, counter, type MetricsRegistry } from "@rollcall/process";
import { callerKey, peerKey } from "../calls/call-context.ts";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import { refuseCall } from "../connect/answer-error.ts";
import type { StrangerLog } from "./stranger-log.ts";

export interface UnreadAnswersOptions {
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: StrangerLog;
  readonly metrics: MetricsRegistry;
  /** How long a peer may read nothing of what waits for it. Default 30 s. */
  readonly unreadMs?: number;
  /**
   * How long the request of a call with one answer may take to come, besides the deadline of its method. Default 60 s.
   */
  readonly requestMs?: number;
  /** How often calls are looked at. Default 5 s. */
  readonly everyMs?: number;
}

/** A call whose answer is looked after. */
export interface AnsweredCall {
  readonly method: string;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly values: ContextValues;
  /** The longest that its method may take; 0 for a stream, whose request may come as late as it likes. */
  readonly deadlineMs: number;
}

interface PendingAnswer extends AnsweredCall {
  readonly startMs: number;
  /** Writes that were begun, and those that the peer's connection has taken. */
  begun: number;
  taken: number;
  /** What was taken when it was looked at last, and since when it has not changed while something waited. */
  seen: number;
  sinceMs: number;
}

const DEFAULT_UNREAD_MS = 30_000;
const DEFAULT_REQUEST_MS = 60_000;
const DEFAULT_EVERY_MS = 5_000;
/**
 * A peer that reads answers a ping at once; one from which nothing comes for so long reads nothing of its whole
 * connection.
 */
const PONG_MS = 10_000;

/**
 * Gives up answers that are not read, of calls with one answer and of streams, over HTTP/1.1 and HTTP/2: what waits for
 * a peer that takes none of it for 30 s is dropped. A stream that has nothing to send waits as long as it likes.
 * Over HTTP/2 the call alone is ended, and its connection only if the peer answers no ping either: others may share it.
 */
export class UnreadAnswers {
  readonly #options: UnreadAnswersOptions;
  readonly #unreadMs: number;
  readonly #requestMs: number;
  readonly #calls = new Set<PendingAnswer>();
  readonly #suspects = new Map<Http2Session, number>();
  readonly #givenUp: (what: "answer" | "request" | "connection") => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: UnreadAnswersOptions) {
    this.#options = options;
    this.#unreadMs = options.unreadMs ?? DEFAULT_UNREAD_MS;
    this.#requestMs = options.requestMs ?? DEFAULT_REQUEST_MS;
    const total = counter(options.metrics, {
      name: "rollcall_calls_given_up_total",
      help: "Unread answers, requests that did not come whole, and connections that answered no ping.",
      labelNames: ["what"],
    });
    this.#givenUp = (what) => total.inc({ what });
  }

  /** How many calls are looked after. */
  get size(): number {
    return this.#calls.size;
  }

  /** Look after a call until its answer has been read. To be called before anything is written. */
  join(call: AnsweredCall): void {
    const nowMs = this.#options.clock.nowMs();
    const pending = { startMs: nowMs, begun: 0, taken: 0, seen: 0, sinceMs: nowMs, ...call };
    countWrites(pending);
    this.#calls.add(pending);
    call.response.once("close", () => this.#calls.delete(pending));
    const { everyMs = DEFAULT_EVERY_MS } = this.#options;
    this.#timer ??= setInterval(() => this.#check(), everyMs).unref();
  }

  #check(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const call of this.#calls) this.#look(call, nowMs);
    for (const [session, sinceMs] of this.#suspects) {
      if (nowMs - sinceMs < PONG_MS && nowMs - sinceMs < this.#unreadMs) continue;
      this.#suspects.delete(session);
      this.#givenUp("connection");
      session.destroy();
    }
    if (this.#calls.size > 0 || this.#suspects.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(call: PendingAnswer, nowMs: number): void {
    const { response } = call;
    // What has ended is on its way until the response is closed.
    const isWaiting = call.begun > call.taken || response.writableEnded;
    if (!isWaiting || call.taken !== call.seen) {
      call.seen = call.taken;
      call.sinceMs = nowMs;
    } else if (nowMs - call.sinceMs >= this.#unreadMs) {
      this.#giveUpAnswer(call, nowMs);
      return;
    }
    const isLate = nowMs - call.startMs >= this.#requestMs + call.deadlineMs;
    if (call.deadlineMs > 0 && !response.headersSent && isLate) this.#giveUpRequest(call);
  }

  #giveUpAnswer(call: PendingAnswer, nowMs: number): void {
    const { request, response } = call;
    this.#calls.delete(call);
    this.#givenUp("answer");
    this.#write(call, "PEER_TOO_SLOW", "answer given up, its caller does not read it");
    if (!("stream" in response)) {
      request.socket.destroy();
      return;
    }
    const { session } = response.stream;
    endStream(response);
    if (session === undefined || session.destroyed || this.#suspects.has(session)) return;
    this.#suspects.set(session, nowMs);
    const settled = () => this.#suspects.delete(session);
    session.once("close", settled);
    session.ping((error) => {
      if (error === null) settled();
    });
  }

  #giveUpRequest(call: PendingAnswer): void {
    const { request, response } = call;
    this.#calls.delete(call);
    this.#givenUp("request");
    this.#write(call, "DEADLINE_EXCEEDED", "request given up, it does not come whole");
    const limitMs = String(this.#requestMs);
    const message = `the request did not come whole within ${limitMs} ms`;
    if (!("stream" in response)) response.once("finish", () => request.socket.destroy());
    refuseCall(request, response, refuse("DEADLINE_EXCEEDED", message, { metadata: { limit_ms: limitMs } }));
  }

  #write({ method, values }: PendingAnswer, reason: string, message: string): void {
    this.#options.log.write({
      level: "info",
      peer: values.get(peerKey),
      what: reason,
      fields: { method, reason, caller: actorOf(values.get(callerKey)) },
      message,
    });
  }
}

/** What the client reads of it is RESOURCE_EXHAUSTED. */
function endStream({ stream }: Http2ServerResponse): void {
  stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // What waits would keep it alive for as long as it is not read.
  stream.destroy();
}

/**
 * Count the writes of a response as they are begun and taken. Every way in which an answer is written passes here: the
 * one beside Connect's pipeline and that pipeline itself, which does not tell how far it has come.
 */
function countWrites(call: PendingAnswer): void {
  const response = call.response as {
    write(chunk: unknown, encoding?: BufferEncoding, callback?: (error?: Error) => void): boolean;
  };
  const write = response.write;
  const onTaken = () => {
    call.taken += 1;
  };
  response.write = function (chunk, encoding = "utf8", callback) {
    call.begun += 1;
    const onDone =
      callback === undefined
        ? onTaken
        : (error?: Error) => {
            onTaken();
            callback(error);
          };
    return write.call(this, chunk, encoding, onDone);
  };
}
