import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { ServerReadableStream, sendUnaryData } from "@grpc/grpc-js";
import {
  type ServeLogsRequest,
  type ServeLogsResponse,
  ServeLogsResponseSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { OutputStream } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";
import { describeError, isErrorReasonName, refuse } from "@rollcall/errors";
import type { Clock } from "@rollcall/process";
import { errorFromGrpc, statusOf, toGrpcStatus } from "@rollcall/rpc";
import type { HeldNode } from "../replica/held-node.ts";
import type { LogQuery } from "./work-frames.ts";

/** A call of HealthService.ServeLogs, and how it is answered. */
export type LogCall = ServerReadableStream<ServeLogsRequest, ServeLogsResponse | Buffer>;
type Answer = sendUnaryData<ServeLogsResponse | Buffer>;

/** A piece of output. */
export interface LogPiece {
  readonly stream: OutputStream;
  /** In bytes of this output since the execution started. */
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** Whether the requested output starts earlier and is no longer kept. */
  readonly cut: boolean;
  /** When it was written, as far as the node knows. */
  readonly times: readonly OutputTime[];
}

export interface LogDeskOptions {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** How long an agent may take to open the call that brings the output. Default 10 s. */
  readonly openWithinMs?: number;
  /** Bytes a second of one reading. Default 4 MiB. */
  readonly bytesPerSecond?: number;
  /** Called with the bytes of each piece of a reading, and the agent that sent it as its call names it. */
  readonly onTaken?: (peer: string, bytes: number) => void;
}

/** Most concurrent readings of one node, which is also its agent's limit, and of this replica. */
const MOST_OF_NODE = 16;
const MOST_READINGS = 200;
/** Most concurrent readings of one caller, so that others can read from the same node and from other nodes. */
const MOST_OF_CALLER = 50;
const MOST_OF_CALLER_AND_NODE = 8;
/** Calls that have not said which reading they are for. */
const MOST_UNNAMED = 100;
const TOKEN_BYTES = 16;
const RETRY_AFTER_MS = 2_000;
/** A timer for each small piece would cost more than the piece. */
const LEAST_PAUSE_MS = 20;
const DEFAULT_OPEN_WITHIN_MS = 10_000;
const DEFAULT_BYTES_PER_SECOND = 4 * 1_024 * 1_024;

/** One for all: strangers may cause many of them. */
const UNNAMED = refuse("LOG_NOT_FOUND", "the first frame names the token of the LogRequest that the call is for");

/** The messages of a call. */
type Pieces = Pick<AsyncIterator<ServeLogsRequest>, "next">;

/** A call that has named its reading. */
interface Opened {
  readonly pieces: Pieces;
  readonly first: ServeLogsRequest;
  readonly end: () => void;
  /** Note that a piece of so many bytes was taken. */
  readonly took: (bytes: number) => void;
}

interface Reading {
  readonly nodeId: string;
  /** Take the call that brings the output. */
  readonly begin: (opened: Opened) => void;
}

/**
 * Brings the output of executions from agents to readers. A reader's question goes down the agent's stream with a token
 * made for it; the agent opens a call of its own for the output and names the token, known to that agent alone. What is
 * not read is not sent: HTTP/2 holds it back at the agent.
 */
export class LogDesk {
  readonly #options: Required<Omit<LogDeskOptions, "onTaken">> & Pick<LogDeskOptions, "onTaken">;
  /** Readings that wait for their call, by token. */
  readonly #waiting = new Map<string, Reading>();
  readonly #ofNode = new Map<string, number>();
  readonly #ofCaller = new Map<string, number>();
  #readings = 0;
  /** How to end the calls that have not named their reading. */
  readonly #unnamed = new Set<(error: unknown) => void>();

  constructor({ openWithinMs, bytesPerSecond, ...options }: LogDeskOptions) {
    this.#options = {
      ...options,
      openWithinMs: openWithinMs ?? DEFAULT_OPEN_WITHIN_MS,
      bytesPerSecond: bytesPerSecond ?? DEFAULT_BYTES_PER_SECOND,
    };
  }

  /**
   * The output of an execution of a node that this replica holds. Fails with LOG_UNAVAILABLE, LOG_NOT_FOUND and
   * TOO_MANY_STREAMS.
   */
  async *read(node: HeldNode, query: LogQuery, signal: AbortSignal): AsyncGenerator<LogPiece> {
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

  /** Count a reading of a caller. Returns the function that ends it. Throws TOO_MANY_STREAMS. */
  admit(actor: string, nodeId: string): () => void {
    const keys = [actor, `${actor} ${nodeId}`] as const;
    const [ofCaller, ofBoth] = [this.#ofCaller.get(keys[0]) ?? 0, this.#ofCaller.get(keys[1]) ?? 0];
    if (ofCaller >= MOST_OF_CALLER || ofBoth >= MOST_OF_CALLER_AND_NODE) {
      const of = ofCaller >= MOST_OF_CALLER ? `${MOST_OF_CALLER} outputs` : `${ofBoth} outputs of node ${nodeId}`;
      const message = `${actor} already reads ${of}, the most for one caller; end one first`;
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

  /** Take a call of ServeLogs: its first frame names the reading that it is for. */
  serve(call: LogCall, answer: Answer): void {
    let isAnswered = false;
    const end = (error?: unknown): void => {
      if (isAnswered) return;
      isAnswered = true;
      this.#unnamed.delete(end);
      if (error === undefined) answer(null, create(ServeLogsResponseSchema));
      else answer(toGrpcStatus(error));
      // What the agent has sent by then is let go.
      call.resume();
    };
    call.on("error", () => end());
    call.on("cancelled", () => end());
    // An agent names its token at once: those that wait longest give way.
    const [oldest] = this.#unnamed;
    if (oldest !== undefined && this.#unnamed.size >= MOST_UNNAMED) oldest(UNNAMED);
    this.#unnamed.add(end);
    this.#begin(call, end)
      .catch(end)
      .finally(() => this.#unnamed.delete(end));
  }

  async #begin(call: LogCall, end: (error?: unknown) => void): Promise<void> {
    const pieces = piecesOf(call);
    const first = await this.#inTime(pieces.next());
    if (first === null || first.done === true) throw UNNAMED;
    const key = keyOf(first.value.token);
    const reading = this.#waiting.get(key);
    if (reading === undefined) throw refuse("LOG_NOT_FOUND", "this output is not waited for any more");
    this.#waiting.delete(key);
    const took = (count: number) => this.#options.onTaken?.(call.getPeer(), count);
    reading.begin({ pieces, first: first.value, end, took });
  }

  #enter(nodeId: string): () => void {
    const ofNode = this.#ofNode.get(nodeId) ?? 0;
    if (ofNode >= MOST_OF_NODE || this.#readings >= MOST_READINGS) {
      const most = ofNode >= MOST_OF_NODE ? `${MOST_OF_NODE} outputs of node ${nodeId}` : `${MOST_READINGS} outputs`;
      throw refuse("TOO_MANY_STREAMS", `${most} are being read already`, { retryAfterMs: RETRY_AFTER_MS });
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

  /** Ask the agent, and wait for its call. */
  async #open(node: HeldNode, query: LogQuery, signal: AbortSignal) {
    signal.throwIfAborted();
    const token = randomBytes(TOKEN_BYTES);
    const key = keyOf(token);
    const asked = node.work !== null && node.stream?.sendWork({ kind: "log-request", token, ...query }) === true;
    if (!asked) throw unavailable(node.id, "is not connected just now, or runs no work");
    const opened = new Promise<Opened>((resolve) => {
      this.#waiting.set(key, { nodeId: node.id, begin: resolve });
    });
    try {
      const reading = await this.#inTime(opened, signal);
      if (reading === null) throw unavailable(node.id, "did not bring the output in time");
      return reading;
    } finally {
      this.#waiting.delete(key);
    }
  }

  /** The result of what an agent does; null when it takes too long. */
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

  /** The pieces, no faster than one reading may be. */
  async *#paced(nodeId: string, { pieces, first, took }: Opened, signal: AbortSignal): AsyncGenerator<LogPiece> {
    const { bytesPerSecond, clock } = this.#options;
    let windowMs = clock.nowMs();
    let bytes = 0;
    for (let next: ServeLogsRequest | null = first; next !== null; next = await nextOf(pieces, signal)) {
      if (next.failure !== "") throw failureOf(nodeId, next);
      if (next.data.byteLength === 0) continue;
      took(next.data.byteLength);
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
        // What was not used is not saved up.
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

/** Why an agent sends no output. A reason that agents cannot give becomes LOG_UNAVAILABLE. */
function failureOf(nodeId: string, { failure, failureMessage }: ServeLogsRequest) {
  const why = failureMessage === "" ? "" : `: ${failureMessage}`;
  const metadata = { node: nodeId };
  const retry = { retryAfterMs: RETRY_AFTER_MS, metadata };
  switch (failure) {
    case "LOG_NOT_FOUND":
      return refuse("LOG_NOT_FOUND", `node ${nodeId} keeps no output of the execution${why}`, { metadata });
    case "TOO_MANY_STREAMS":
      return refuse("TOO_MANY_STREAMS", `node ${nodeId} sends no further output at the moment${why}`, retry);
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

/** What a call brings. Rejects with the reason when the call ends before its output does. */
function piecesOf(call: LogCall): Pieces {
  const pieces = (call as AsyncIterable<ServeLogsRequest>)[Symbol.asyncIterator]();
  return {
    next: () =>
      pieces.next().catch((cause: unknown) => {
        throw whyEnded(call, cause);
      }),
  };
}

function whyEnded(call: LogCall, cause: unknown): Error {
  const status = statusOf(call);
  const { reason = "", message } = describeError(errorFromGrpc(status));
  if (status === null || !isErrorReasonName(reason)) {
    const retryAfterMs = RETRY_AFTER_MS;
    return refuse("LOG_UNAVAILABLE", "the node went away while its output was read", { retryAfterMs, cause });
  }
  // The control plane refused what the agent sent: the same output is refused again.
  return refuse(reason, `the output that the node sent was refused: ${message}`, { cause });
}

/** The result of some work. Rejects with the signal's reason when that aborts first. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
