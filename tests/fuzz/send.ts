import { Agent, request as http1Request } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { WireRequest } from "./wire-request.ts";

/** What a call returned. */
export interface Answer {
  /** The HTTP status; 0 if there is none. */
  readonly status: number;
  /** Headers and trailers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /**
   * How the response ended. "whole": completely. "silent": the stream is open and has sent nothing. "open": the
   * stream is open and has sent something. "cut": the connection was closed because the body exceeded the limit of
   * a call. Otherwise, an error.
   */
  readonly end: "whole" | "silent" | "open" | "cut" | string;
}

/**
 * The time limit of a call. It is longer than any deadline of the server, and longer than a call takes on a busy
 * machine.
 */
const PATIENCE_MS = 90_000;
/** How long to wait for the first message of a watch. The value affects only how long a run takes. */
const SILENCE_MS = 400;
const MOST_BYTES = 64 * 1_048_576;
const SESSIONS = 4;
/** The maximum size of a message. If a call sends more, the server may close its connection. */
const MOST_BYTES_OF_A_CALL = 1_048_576;

/** Sends requests to one port over a few persistent connections. */
export class Sender {
  readonly #origin: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #sessions: (ClientHttp2Session | undefined)[] = [];
  #turn = 0;

  /** @param origin for example "http://127.0.0.1:7700". */
  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Send a request, and wait for its response. Never rejects. */
  async send(request: WireRequest): Promise<Answer> {
    return request.http === 1 ? this.#sendHttp1(request) : this.#sendHttp2(request);
  }

  close(): void {
    this.#agent.destroy();
    for (const session of this.#sessions) session?.destroy();
  }

  #sendHttp1(request: WireRequest): Promise<Answer> {
    const { verb, path, headers, body, isStream } = request;
    return new Promise((resolve) => {
      const collected = new Collected(isStream, resolve, () => outgoing.destroy());
      const outgoing = http1Request(`${this.#origin}${path}`, {
        method: verb,
        headers: { ...headers, "content-length": String(body.length) },
        agent: this.#agent,
      });
      outgoing.on("response", (incoming) => {
        collected.head(incoming.statusCode ?? 0, incoming.headers);
        incoming.on("data", (chunk: Buffer) => collected.add(chunk));
        incoming.on("end", () => collected.finish("whole"));
        incoming.on("aborted", () => collected.finish("the answer was cut"));
      });
      outgoing.on("error", (error) => {
        // Send the request again, because the server may close an idle connection just when it is reused.
        if (outgoing.reusedSocket && !collected.hasHead) collected.hand(this.#sendHttp1(request));
        else collected.finish(`no answer: ${error.message}`);
      });
      outgoing.end(body);
    });
  }

  #sendHttp2(request: WireRequest, isAgain = false): Promise<Answer> {
    const { verb, path, headers, body, isStream } = request;
    // Use a new session, because the others may be about to end as well.
    const hasItsOwn = isAgain || body.length > MOST_BYTES_OF_A_CALL;
    return new Promise((resolve) => {
      const session = hasItsOwn ? this.#connect() : this.#session();
      const stream = session.request({
        ":method": verb,
        ":path": path,
        ...(request.protocol === "grpc" ? { te: "trailers" } : {}),
        ...headers,
      });
      const collected = new Collected(isStream, resolve, () => stream.close());
      if (hasItsOwn) stream.once("close", () => session.destroy());
      stream.on("error", ({ message }) => {
        // The server may send GOAWAY on a session just when it is reused. It has not processed the streams that it
        // refuses.
        const isRefused = message.endsWith(" NGHTTP2_REFUSED_STREAM") && !collected.hasHead;
        if (isRefused && !isAgain) collected.hand(this.#sendHttp2(request, true));
      });
      listen(stream, collected, body.length);
      // Do not end a GET request, because it has already ended.
      if (verb === "POST") stream.end(body);
    });
  }

  #session(): ClientHttp2Session {
    this.#turn = (this.#turn + 1) % SESSIONS;
    const known = this.#sessions[this.#turn];
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const session = this.#connect();
    this.#sessions[this.#turn] = session;
    return session;
  }

  #connect(): ClientHttp2Session {
    const session = connect(this.#origin);
    // Ignore the error here, because each stream of the session reports it as well.
    session.on("error", () => {});
    return session;
  }
}

/** Describe how a call failed after it had sent this many bytes. */
export function endOf({ message }: Error, sentBytes: number): string {
  const isCalmed = message.endsWith(` ${constants.NGHTTP2_ENHANCE_YOUR_CALM}`);
  return isCalmed && sentBytes > MOST_BYTES_OF_A_CALL ? "cut" : `no answer: ${message}`;
}

function listen(stream: ClientHttp2Stream, collected: Collected, sentBytes: number): void {
  stream.on("response", (headers) => collected.head(Number(headers[":status"]), headers));
  stream.on("trailers", (headers: IncomingHttpHeaders) => collected.tail(headers));
  stream.on("data", (chunk: Buffer) => collected.add(chunk));
  stream.on("error", (error) => collected.finish(endOf(error, sentBytes)));
  stream.on("close", () => {
    collected.finish(collected.hasHead ? "whole" : `no answer: reset with ${stream.rstCode}`);
  });
}

/** A response that is still arriving. */
class Collected {
  readonly #isStream: boolean;
  readonly #settle: (answer: Answer) => void;
  readonly #leave: () => void;
  readonly #chunks: Buffer[] = [];
  readonly #timers: readonly NodeJS.Timeout[];
  #size = 0;
  #status = 0;
  #headers: Record<string, string> = {};
  #isDone = false;

  constructor(isStream: boolean, settle: (answer: Answer) => void, leave: () => void) {
    this.#isStream = isStream;
    this.#settle = settle;
    this.#leave = leave;
    const late = setTimeout(() => this.finish(`no answer in ${PATIENCE_MS} ms`), PATIENCE_MS);
    const quiet = setTimeout(() => {
      if (isStream) this.finish(this.#size === 0 ? "silent" : "open");
    }, SILENCE_MS);
    this.#timers = [late, quiet];
  }

  get hasHead(): boolean {
    return this.#status !== 0;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.tail(headers);
  }

  tail(headers: IncomingHttpHeaders): void {
    for (const [name, value] of Object.entries(headers)) this.#headers[name] = String(value);
  }

  add(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size <= MOST_BYTES) this.#chunks.push(chunk);
    // The first message of a stream is enough. The frame that ends a stream is small, and the end of the stream
    // follows immediately.
    if (this.#isStream && this.#size > 4_096) this.finish("open");
  }

  /** Take over the response to another attempt. */
  hand(other: Promise<Answer>): void {
    if (this.#isDone) return;
    this.#isDone = true;
    for (const timer of this.#timers) clearTimeout(timer);
    void other.then(this.#settle);
  }

  finish(end: string): void {
    if (this.#isDone) return;
    this.#isDone = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#settle({
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#chunks),
      end,
    });
    if (end !== "whole") this.#leave();
  }
}
