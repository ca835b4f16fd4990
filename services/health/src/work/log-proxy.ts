import { randomBytes } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { type ServeLogsRequest, ServeLogsResponseSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError, isErrorReasonName, refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import { CallRequests, type FrameCall, type FrameReader } from "@rollcall/rpc";
import type { LiveNode } from "../replica/live-node.ts";
import type { LogQuery } from "../replica/work-frames.ts";

/** What is used of a call of HealthService.ServeLogs. */
export type LogCall = Pick<FrameCall<ServeLogsRequest>, "pause" | "resume" | "write" | "end" | "explain">;

/** A piece of output. */
export interface LogPiece {
  readonly stream: OutputStream;
  /** Offset in bytes in this stream of output since the execution started. */
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** Whether the beginning of the requested output is no longer kept. */
  readonly cut: boolean;
  /** When the output was written, as far as the node knows. */
  readonly times: readonly OutputTime[];
}

export interface LogProxyOptions {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** Time limit for an agent to open the call that sends the output. Default 10 s. */
  readonly openWithinMs?: number;
  /** Maximum bytes per second of one reader. Default 4 MiB. */
  readonly bytesPerSecond?: number;
}

/** Maximum number of concurrent readers of one node, which every agent also enforces, and of this replica. */
const MOST_OF_NODE = 16;
const MOST_READINGS = 200;
/** Maximum number of concurrent readers of one caller, so that some are left for others. */
const MOST_OF_CALLER = 50;
const MOST_OF_CALLER_AND_NODE = 8;
/** Maximum number of calls that have not sent their token yet. */
const MOST_UNNAMED = 100;
const TOKEN_BYTES = 16;
const RETRY_AFTER_MS = 2_000;
/** Minimum pause. Shorter pauses are added up, because a timer for each small piece would cost more than the piece. */
const LEAST_PAUSE_MS = 20;
const DEFAULT_OPEN_WITHIN_MS = 10_000;
const DEFAULT_BYTES_PER_SECOND = 4 * 1_024 * 1_024;

const RESPONSE = Buffer.from(toBinary(ServeLogsResponseSchema, create(ServeLogsResponseSchema)));

/** An error that all calls share, because anonymous clients can cause many of these errors. */
const UNNAMED = refuse("LOG_NOT_FOUND", "the first frame must carry the token of the LogRequest");

/** The messages of a call. */
type Pieces = Pick<AsyncIterator<ServeLogsRequest>, "next">;

/** A call that has sent its token. */
interface Opened {
  readonly call: LogCall;
  readonly pieces: Pieces;
  readonly first: ServeLogsRequest;
  readonly end: () => void;
}

interface Reading {
  readonly nodeId: string;
  /** Accept the call that sends the output. */
  readonly begin: (opened: Opened) => void;
}

/**
 * Streams the output of executions from agents to readers. Sends a reader's request to the agent over its stream, with
 * a new token. The agent opens a separate call for the output, which carries the token; only that agent knows it.
 * Output that is not read is not sent: HTTP/2 flow control holds it back at the agent.
 */
export class LogProxy {
  readonly #options: Required<LogProxyOptions>;
  /** Readers that wait for the agent's call, keyed by token. */
  readonly #waiting = new Map<string, Reading>();
  readonly #ofNode = new Map<string, number>();
  readonly #ofCaller = new Map<string, number>();
  #readings = 0;
  /** Functions that end the calls that have not sent their token yet. */
  readonly #unnamed = new Set<(error: unknown) => void>();

  constructor({ openWithinMs, bytesPerSecond, ...options }: LogProxyOptions) {
    this.#options = {
      ...options,
      openWithinMs: openWithinMs ?? DEFAULT_OPEN_WITHIN_MS,
      bytesPerSecond: bytesPerSecond ?? DEFAULT_BYTES_PER_SECOND,
    };
  }

  /**
   * Read the output of an execution on a node that this replica holds. Fails with LOG_UNAVAILABLE, LOG_NOT_FOUND and
   * TOO_MANY_STREAMS.
   */
  async *read(node: LiveNode, query: LogQuery, signal: AbortSignal): AsyncGenerator<LogPiece> {
    const leave = this.#enter(node.id);
    try {
      const opened = await this.#open(node, query, signal);
      try {
        yield* this.#paced(node.id, opened, signal);
      } finally {
        opened.end();
      }
    } finally {
      leave();
    }
  }

  /** Count a reader of a caller. Returns a function that stops counting it. Throws TOO_MANY_STREAMS. */
  admit(actor: string, nodeId: string): () => void {
    const keys = [actor, `${actor} ${nodeId}`] as const;
    const [ofCaller, ofBoth] = [this.#ofCaller.get(keys[0]) ?? 0, this.#ofCaller.get(keys[1]) ?? 0];
    if (ofCaller >= MOST_OF_CALLER || ofBoth >= MOST_OF_CALLER_AND_NODE) {
      const of = ofCaller >= MOST_OF_CALLER ? `${MOST_OF_CALLER} outputs` : `${ofBoth} outputs of node ${nodeId}`;
      const message = `${actor} already reads ${of}, the maximum for one caller; stop one first`;
      throw refuse("TOO_MANY_STREAMS", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    for (const key of keys) this.#ofCaller.set(key, (this.#ofCaller.get(key) ?? 0) + 1);
    return () => {
      for (const key of keys) {
        const left = (this.#ofCaller.get(key) ?? 1) - 1;
        if (left === 0) this.#ofCaller.delete(key);
        else this.#ofCaller.set(key, left);
      }
    };
  }

  /** Handle a call of ServeLogs. Its first frame carries the token of a waiting reader. */
  serve(call: LogCall): FrameReader<ServeLogsRequest> {
    const requests = new CallRequests<ServeLogsRequest>(call);
    const end = (error?: unknown): void => {
      this.#unnamed.delete(end);
      if (error === undefined) call.write(RESPONSE);
      call.end(error);
    };
    // When too many calls have sent no token, end the oldest, because an agent sends its token immediately.
    const [oldest] = this.#unnamed;
    if (oldest !== undefined && this.#unnamed.size >= MOST_UNNAMED) oldest(UNNAMED);
    this.#unnamed.add(end);
    this.#begin(call, requests, end)
      .catch(end)
      .finally(() => this.#unnamed.delete(end));
    return requests;
  }

  async #begin(call: LogCall, requests: Pieces, end: (error?: unknown) => void): Promise<void> {
    const pieces = piecesOf(requests);
    const first = await this.#inTime(pieces.next());
    if (first === null || first.done === true) throw UNNAMED;
    const key = keyOf(first.value.token);
    const reading = this.#waiting.get(key);
    if (reading === undefined) throw refuse("LOG_NOT_FOUND", "no reader is waiting for this output");
    this.#waiting.delete(key);
    reading.begin({ call, pieces, first: first.value, end });
  }

  #enter(nodeId: string): () => void {
    const ofNode = this.#ofNode.get(nodeId) ?? 0;
    if (ofNode >= MOST_OF_NODE || this.#readings >= MOST_READINGS) {
      const most = ofNode >= MOST_OF_NODE ? `${MOST_OF_NODE} outputs of node ${nodeId}` : `${MOST_READINGS} outputs`;
      throw refuse("TOO_MANY_STREAMS", `${most} are already being read, which is the maximum; try again later`, {
        retryAfterMs: RETRY_AFTER_MS,
      });
    }
    this.#readings += 1;
    this.#ofNode.set(nodeId, ofNode + 1);
    return () => {
      this.#readings -= 1;
      const left = (this.#ofNode.get(nodeId) ?? 1) - 1;
      if (left === 0) this.#ofNode.delete(nodeId);
      else this.#ofNode.set(nodeId, left);
    };
  }

  /** Send the request to the agent, and wait for the agent's call. */
  async #open(node: LiveNode, query: LogQuery, signal: AbortSignal) {
    signal.throwIfAborted();
    const token = randomBytes(TOKEN_BYTES);
    const key = keyOf(token);
    const asked = node.work !== null && node.stream?.sendWork({ kind: "log-request", token, ...query }) === true;
    if (!asked) throw unavailable(node.id, "is not connected, or runs no work");
    const opened = new Promise<Opened>((resolve) => {
      this.#waiting.set(key, { nodeId: node.id, begin: resolve });
    });
    try {
      const reading = await this.#inTime(opened, signal);
      if (reading === null) throw unavailable(node.id, "did not send the output in time");
      return reading;
    } finally {
      this.#waiting.delete(key);
    }
  }

  /** Wait for the agent. Resolves with null when that takes too long. */
  async #inTime<T>(work: Promise<T>, signal?: AbortSignal): Promise<T | null> {
    const { clock, openWithinMs } = this.#options;
    const over = new AbortController();
    const late = clock.sleep(openWithinMs, over.signal).then(
      () => null,
      () => null,
    );
    try {
      return await orAborted(Promise.race([work, late]), signal);
    } finally {
      over.abort();
    }
  }

  /** Yield the pieces, limited to the maximum rate. */
  async *#paced(nodeId: string, { call, pieces, first }: Opened, signal: AbortSignal): AsyncGenerator<LogPiece> {
    const { bytesPerSecond, clock } = this.#options;
    let windowMs = clock.nowMs();
    let bytes = 0;
    for (let next: ServeLogsRequest | null = first; next !== null; next = await nextOf(pieces, signal)) {
      if (next.failure !== "") throw failureOf(nodeId, next);
      if (next.data.byteLength === 0) continue;
      call.explain(next.data.byteLength);
      yield {
        stream: next.stream === OutputStream.STDERR ? OutputStream.STDERR : OutputStream.STDOUT,
        offset: next.offset,
        data: next.data,
        cut: next.cut,
        times: next.times,
      };
      bytes += next.data.byteLength;
      const nowMs = clock.nowMs();
      const aheadMs = (bytes / bytesPerSecond) * 1_000 - (nowMs - windowMs);
      if (aheadMs >= LEAST_PAUSE_MS) await clock.sleep(aheadMs, signal);
      else if (nowMs - windowMs > 1_000) {
        // Start a new window, because unused rate does not accumulate.
        windowMs = nowMs;
        bytes = 0;
      }
    }
  }
}

function keyOf(token: Uint8Array): string {
  return Buffer.from(token).toString("base64");
}

function unavailable(nodeId: string, why: string) {
  const message = `the output cannot be read: node ${nodeId} ${why}`;
  return refuse("LOG_UNAVAILABLE", message, { retryAfterMs: RETRY_AFTER_MS, metadata: { node: nodeId } });
}

/** The error for an agent's failure. A reason that agents must not set becomes LOG_UNAVAILABLE. */
function failureOf(nodeId: string, { failure, failureMessage }: ServeLogsRequest) {
  const why = failureMessage === "" ? "" : `: ${failureMessage}`;
  const metadata = { node: nodeId };
  const retry = { retryAfterMs: RETRY_AFTER_MS, metadata };
  switch (failure) {
    case "LOG_NOT_FOUND":
      return refuse("LOG_NOT_FOUND", `node ${nodeId} has no output of the execution${why}`, { metadata });
    case "TOO_MANY_STREAMS":
      return refuse("TOO_MANY_STREAMS", `node ${nodeId} cannot send more outputs at the same time${why}`, retry);
    case "LOG_UNAVAILABLE":
      return refuse("LOG_UNAVAILABLE", `node ${nodeId} cannot read the output${why}`, retry);
    default:
      return refuse("LOG_UNAVAILABLE", `node ${nodeId} cannot send the output, ${failure}${why}`, retry);
  }
}

async function nextOf(pieces: Pieces, signal: AbortSignal): Promise<ServeLogsRequest | null> {
  const next = await orAborted(pieces.next(), signal);
  return next.done === true ? null : next.value;
}

/** The messages of a call. Rejects with the reason when the call ends before its output does. */
function piecesOf(requests: Pieces): Pieces {
  return {
    next: () =>
      requests.next().catch((cause: unknown) => {
        throw whyEnded(cause);
      }),
  };
}

function whyEnded(cause: unknown): Error {
  const { reason = "", message } = describeError(cause);
  if (reason === "CANCELLED" || !isErrorReasonName(reason)) {
    const retryAfterMs = RETRY_AFTER_MS;
    return refuse("LOG_UNAVAILABLE", "the node disconnected while its output was being read", { retryAfterMs, cause });
  }
  // The control plane refused the output that the agent sent, and would refuse it again.
  return refuse(reason, `the output that the node sent was refused: ${message}`, { cause });
}

/** Wait for a promise. Rejects with the signal's reason if the signal aborts first. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
