import type { ConnectError } from "@connectrpc/connect";
import { mapError, refuse } from "@rollcall/errors";
import { type Authenticator, actorOf, type Caller, type Role } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { answerConnectError, sendWhole } from "../answers/answer-error.ts";
import { addressOf, type ClientAddress, peerOf } from "../calls/client-address.ts";
import { findCaller } from "../calls/find-caller.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, writeHead } from "../calls/http-handler.ts";
import { Limiter } from "../calls/limiter.ts";
import { codeName } from "../calls/policy.ts";
import { trustConnection } from "../connections/connection.ts";
import { type FailedAttempts, tokenAttempt } from "../limits/failed-attempts.ts";

/** A page that is read over plain HTTP, by programs that need their own format. */
export interface HttpPage {
  /** The path, for example "/v1/prometheus/sd". */
  readonly path: string;
  /** The role that a caller needs. */
  readonly caller: Role;
  /** Time limit in milliseconds. It includes the wait for a slot. */
  readonly deadlineMs: number;
  /** Create the page. Errors are sent like those of a method, with an HTTP status and JSON. */
  answer(request: PageRequest): Promise<PageAnswer>;
}

export interface PageRequest {
  /** The query parameters. */
  readonly query: URLSearchParams;
  /** Aborts when the caller disconnects or the deadline passes. */
  readonly signal: AbortSignal;
}

/** The contents of a page, in pieces. */
export interface PageAnswer {
  readonly contentType: string;
  readonly pieces: readonly Uint8Array[];
}

/** What the server provides to serve pages. */
export interface PageServing {
  readonly authenticate: Authenticator;
  readonly failures?: FailedAttempts | undefined;
  readonly clientAddress?: ClientAddress | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Record a request in the metrics, under the page's path. */
  observe(page: string, code: string, durationMs: number): void;
}

/**
 * Maximum number of pages that are created and sent at the same time, and of requests that wait. The limits are low
 * because pages can be large.
 */
const AT_A_TIME = 2;
const MOST_WAITING = 16;
/**
 * Limits for a single caller: pages at a time, and waiting requests. If the caller reads slowly or not at all, other
 * callers can still use the other slot.
 */
const OF_A_CALLER = 1;
const MOST_WAITING_OF_A_CALLER = 8;
const RETRY_AFTER_MS = 1_000;

/** Create a handler that serves these pages. Other requests go to `otherwise`. */
export function serveHttpPages(pages: readonly HttpPage[], serving: PageServing, otherwise: HttpHandler): HttpHandler {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const limiter = new Limiter(AT_A_TIME, OF_A_CALLER);
  return (request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const page = byPath.get(path);
    if (page === undefined) return otherwise(request, response);
    if (request.method !== "GET") {
      const headers = { "content-type": "text/plain", allow: "GET" };
      return sendWhole(request, response, 405, headers, "this page only supports GET\n");
    }
    const startMs = serving.clock.nowMs();
    const done = (error?: ConnectError) => {
      serving.observe(`GET ${path}`, codeName(error?.code), serving.clock.nowMs() - startMs);
    };
    answerPage({ page, query, request, response, limiter }, serving).then(
      () => done(),
      (error: unknown) => {
        const mapped = mapError(error);
        done(mapped);
        serving.log.debug({ path, err: error }, "page failed");
        if (response.headersSent || response.writableEnded) response.destroy();
        else answerConnectError(request, response, mapped);
      },
    );
  };
}

interface Asked {
  readonly page: HttpPage;
  readonly query: string;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly limiter: Limiter;
}

async function answerPage({ page, query, request, response, limiter }: Asked, serving: PageServing): Promise<void> {
  const ending = new AbortController();
  const onClose = () => ending.abort(new Error("the caller disconnected"));
  // Listen before the first await, because a disconnect is reported only once.
  response.once("close", onClose);
  try {
    const caller = await admit(page, request, serving);
    await makePage({ page, query, request, response, limiter }, actorOf(caller), ending, serving.clock);
  } finally {
    response.off("close", onClose);
  }
}

async function makePage(asked: Asked, party: string, ending: AbortController, clock: Clock): Promise<void> {
  const { page, query, request, response, limiter } = asked;
  ending.signal.throwIfAborted();
  if (!limiter.isFree && limiter.waiting >= MOST_WAITING) {
    throw refuse("OVERLOADED", "too many pages are being created; try again", { retryAfterMs: RETRY_AFTER_MS });
  }
  if (limiter.waitingOf(party) >= MOST_WAITING_OF_A_CALLER) {
    const message = `a caller can have one page in progress and ${MOST_WAITING_OF_A_CALLER} waiting; try again`;
    throw refuse("TOO_MANY_CALLS", message, { retryAfterMs: RETRY_AFTER_MS });
  }
  const over = new AbortController();
  clock.sleep(page.deadlineMs, over.signal).then(
    () => ending.abort(refuse("DEADLINE_EXCEEDED", `the page took longer than ${page.deadlineMs / 1_000} s`)),
    // Ignore the rejection: the sleep was aborted, because the page was sent in time.
    () => {},
  );
  try {
    const leave = await limiter.enter(ending.signal, party);
    try {
      const answer = await page.answer({ query: new URLSearchParams(query), signal: ending.signal });
      ending.signal.throwIfAborted();
      await send(request, response, answer, ending.signal);
    } finally {
      leave();
    }
  } finally {
    over.abort();
  }
}

/** Check that the caller's token is valid and that its role suffices. */
async function admit(page: HttpPage, request: HttpRequest, serving: PageServing): Promise<Caller> {
  const { authorization = null } = request.headers;
  const peer = addressOf(peerOf(request.socket), request.headers, serving.clientAddress);
  const attempt = authorization === null ? null : tokenAttempt(peer, authorization);
  if (attempt !== null) serving.failures?.check(attempt);
  let isKnown = false;
  try {
    const caller = await findCaller(page.caller, authorization, serving.authenticate, () => {
      isKnown = true;
      trustConnection(request, "known");
    });
    if (attempt !== null) serving.failures?.passed(attempt);
    return caller;
  } catch (error) {
    if (attempt !== null && isKnown) serving.failures?.passed(attempt);
    else if (attempt !== null) serving.failures?.ended(attempt, error);
    throw error;
  }
}

/** Send a page no faster than the caller reads it. The caller's slot is held until the page is sent. */
async function send(
  request: HttpRequest,
  response: HttpResponse,
  { contentType, pieces }: PageAnswer,
  signal: AbortSignal,
): Promise<void> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  request.resume();
  writeHead(response, 200, { "content-type": contentType, "content-length": String(length) });
  // Use one type for both kinds of responses, which differ only in the overloads of their methods.
  const out = response as { write(piece: Uint8Array): boolean } & NodeJS.EventEmitter;
  for (const piece of pieces) if (!out.write(piece)) await drained(out, signal);
  response.end();
}

function drained(out: NodeJS.EventEmitter, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    const onDrain = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    out.once("drain", onDrain);
  });
}
