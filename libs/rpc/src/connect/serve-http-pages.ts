import type { ConnectError } from "@connectrpc/connect";
import { mapError, refuse } from "@rollcall/errors";
import { type Authenticator, actorOf, type Caller, type Role } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { addressOf, type ClientAddress, peerOf } from "../calls/client-address.ts";
import { findCaller } from "../calls/find-caller.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, writeHead } from "../calls/http-handler.ts";
import { Limiter } from "../calls/limiter.ts";
import { codeName } from "../calls/policy.ts";
import { trustConnection } from "../connections/connection.ts";
import { type FailedAttempts, tokenAttempt } from "../limits/failed-attempts.ts";
import { answerConnectError, sendWhole } from "./answer-error.ts";

/** Something that is read by plain HTTP, for programs that have a format of their own. */
export interface HttpPage {
  /** Where it is, for example "/v1/prometheus/sd". */
  readonly path: string;
  /** The role that its readers need. */
  readonly caller: Role;
  /** How long it may take, waiting for its turn included, in milliseconds. */
  readonly deadlineMs: number;
  /** Make it. What this throws is answered as that of a method is, with a status of HTTP and JSON. */
  answer(request: PageRequest): Promise<PageAnswer>;
}

/** What is asked for. */
export interface PageRequest {
  /** The parameters after the path. */
  readonly query: URLSearchParams;
  /** Aborts when the caller goes away, or the deadline passes. */
  readonly signal: AbortSignal;
}

/** A page, in pieces. */
export interface PageAnswer {
  readonly contentType: string;
  readonly pieces: readonly Uint8Array[];
}

/** What serving pages needs of a server. */
export interface PageServing {
  readonly authenticate: Authenticator;
  readonly failures?: FailedAttempts | undefined;
  readonly clientAddress?: ClientAddress | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Measures, under the name of the page. */
  observe(page: string, code: string, durationMs: number): void;
}

/** Pages made and read at a time, and those that wait for their turn: each can have many bytes. */
const AT_A_TIME = 2;
const MOST_WAITING = 16;
/** Of one caller: one that reads slowly, or not at all, leaves the other place to the others. */
const OF_A_CALLER = 1;
const MOST_WAITING_OF_A_CALLER = 8;
const RETRY_AFTER_MS = 1_000;

/** A handler of these pages that leaves all else to `otherwise`. */
export function serveHttpPages(pages: readonly HttpPage[], serving: PageServing, otherwise: HttpHandler): HttpHandler {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const limiter = new Limiter(AT_A_TIME, OF_A_CALLER);
  return (request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const page = byPath.get(path);
    if (page === undefined) return otherwise(request, response);
    if (request.method !== "GET") {
      const headers = { "content-type": "text/plain", allow: "GET" };
      return sendWhole(request, response, 405, headers, "this page is read with GET\n");
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
        serving.log.debug({ path, err: error }, "page not answered");
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
  const onClose = () => ending.abort(new Error("the caller has gone away"));
  // Before anything is waited for: who goes away meanwhile is told of once.
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
    throw refuse("OVERLOADED", "too many pages are being made at present; try again", { retryAfterMs: RETRY_AFTER_MS });
  }
  if (limiter.waitingOf(party) >= MOST_WAITING_OF_A_CALLER) {
    const message = `one page of a caller is made at a time, and ${MOST_WAITING_OF_A_CALLER} wait; try again`;
    throw refuse("TOO_MANY_CALLS", message, { retryAfterMs: RETRY_AFTER_MS });
  }
  const over = new AbortController();
  clock.sleep(page.deadlineMs, over.signal).then(
    () => ending.abort(refuse("DEADLINE_EXCEEDED", `the page took longer than ${page.deadlineMs / 1_000} s`)),
    // It was answered in time.
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

/** Let in a caller whose token is good and whose role suffices. */
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

/** Write a page no faster than it is read; its place is held until then. */
async function send(
  request: HttpRequest,
  response: HttpResponse,
  { contentType, pieces }: PageAnswer,
  signal: AbortSignal,
): Promise<void> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  request.resume();
  writeHead(response, 200, { "content-type": contentType, "content-length": String(length) });
  // One type of both kinds of answers, whose methods differ in their overloads alone.
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
