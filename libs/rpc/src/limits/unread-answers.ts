import { constants, type Http2ServerResponse, type Http2Session } from "node:http2";
import type { ContextValues } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { type Clock, counter, type MetricsRegistry } from "@rollcall/process";
import { refuseCall } from "../answers/answer-error.ts";
import { callerKey, peerKey } from "../calls/call-context.ts";
import type { HttpRequest, HttpResponse } from "../calls/http-handler.ts";
import type { AnonymousLog } from "./anonymous-log.ts";

export interface UnreadAnswersOptions {
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: AnonymousLog;
  readonly metrics: MetricsRegistry;
  /** How long a peer can read nothing while data waits for it. Default 30 s. */
  readonly unreadMs?: number;
  /** How long the request of a unary call can take to arrive, in addition to its method's deadline. Default 60 s. */
  readonly requestMs?: number;
  /** How often to check the calls. Default 5 s. */
  readonly everyMs?: number;
}

/** A call whose response is watched. */
export interface AnsweredCall {
  readonly method: string;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly values: ContextValues;
  /** The maximum duration of the method; 0 for a stream, whose request can take any time. */
  readonly deadlineMs: number;
}

interface PendingAnswer extends AnsweredCall {
  readonly startMs: number;
  /** How many writes have begun, and how many of them the connection has accepted. */
  begun: number;
  taken: number;
  /** How many writes were accepted at the last check, and how long this number has not changed while data waited. */
  seen: number;
  sinceMs: number;
}

const DEFAULT_UNREAD_MS = 30_000;
const DEFAULT_REQUEST_MS = 60_000;
const DEFAULT_EVERY_MS = 5_000;
/**
 * How long to wait for the response to a ping, in milliseconds. A peer that reads responds immediately. A peer that
 * does not respond in this time reads nothing on the whole connection.
 */
const PONG_MS = 10_000;

/**
 * Aborts responses that are not read, both of unary calls and of streams, over HTTP/1.1 and HTTP/2. If the peer has
 * accepted none of the waiting data for 30 s, the data is dropped. A stream with nothing to send can wait without
 * limit. Over HTTP/2, only the call is ended, because other calls may share its connection. The connection is closed
 * only if the peer does not respond to a ping either.
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
      help: "Aborted responses, requests and connections, because the peer did not read, send or answer in time.",
      labelNames: ["what"],
    });
    this.#givenUp = (what) => total.inc({ what });
  }

  /** The number of watched calls. */
  get size(): number {
    return this.#calls.size;
  }

  /** Watch a call until its response has been read. Must be called before anything is written. */
  join(call: AnsweredCall): void {
    const nowMs = this.#options.clock.nowMs();
    const pending = { startMs: nowMs, begun: 0, taken: 0, seen: 0, sinceMs: nowMs, ...call };
    countWrites(pending);
    this.#calls.add(pending);
    call.response.once("close", () => this.#calls.delete(pending));
    const { everyMs = DEFAULT_EVERY_MS } = this.#options;
    this.#timer ??= setInterval(() => this.check(), everyMs).unref();
  }

  /** Abort calls whose response is not read. A timer calls this while calls are open. */
  check(): void {
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
    // Count a response as waiting after end() until it closes, because it is still being sent.
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
    this.#write(call, "PEER_TOO_SLOW", "response aborted because its caller does not read it");
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
    this.#write(call, "DEADLINE_EXCEEDED", "request aborted because it did not arrive in time");
    const limitMs = String(this.#requestMs);
    const message = `the request did not arrive completely within ${limitMs} ms`;
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

/** End a stream so that the client sees RESOURCE_EXHAUSTED. */
function endStream({ stream }: Http2ServerResponse): void {
  stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // Destroy the stream, because unsent data would keep it in memory until the data is read.
  stream.destroy();
}

/**
 * Count the writes of a response when they begin and when they are accepted. Every response passes through here, both
 * on the direct gRPC path and in Connect's pipeline, which does not report its progress.
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
