import { once } from "node:events";
import type { ConnectError } from "@connectrpc/connect";
import { mapError, refuse } from "@rollcall/errors";
import { type Authenticator, actorOf, type Role } from "@rollcall/identity";
import type { Clock, Logger } from "@rollcall/process";
import { answerConnectError, sendWhole } from "../answers/answer-error.ts";
import { addressOf, type ClientAddress, peerOf } from "../calls/client-address.ts";
import { findCaller } from "../calls/find-caller.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, writeHead } from "../calls/http-handler.ts";
import { Limiter } from "../calls/limiter.ts";
import { codeName } from "../calls/policy.ts";
import { trustConnection } from "../connections/connection.ts";
import { type Attempt, type FailedAttempts, tokenAttempt } from "../limits/failed-attempts.ts";

/** A page that is read over plain HTTP, by programs that need their own format. */
export type HttpPage = CreatedPage | PublicPage;

/** A small page that never changes while the process runs, and that anyone can read. */
export interface PublicPage {
  readonly path: string;
  readonly contentType: string;
  readonly content: Uint8Array;
}

/** A page that is created for each request. */
export interface CreatedPage {
  /** The path, for example "/v1/prometheus/sd". */
  readonly path: string;
  /** The role that a caller needs, or the check of a credential that is not an access token. */
  readonly caller: Role | PageCheck;
  /** Time limit in milliseconds. It includes the wait for a slot. */
  readonly deadlineMs: number;
  /** Default: a page shares the limits of all pages without limits. */
  readonly limits?: PageSlots;
  /** Create the page. Errors are sent like those of a method, with an HTTP status and JSON. */
  answer(request: PageRequest): Promise<PageAnswer>;
}

/**
 * Checks the credential of a request. Throws a refusal if the credential does not admit the request. Refusals count
 * towards the limit of failed attempts of nodes, because hundreds of machines can share an address.
 */
export type PageCheck = (request: {
  /** The authorization header; null if there is none. */
  readonly authorization: string | null;
  readonly query: URLSearchParams;
}) => Promise<void>;

/**
 * How many responses of a page are created and sent at the same time, and how many requests wait: in total, and of one
 * caller. A request without an access token belongs to its address.
 */
export interface PageSlots {
  readonly atATime: number;
  readonly mostWaiting: number;
  readonly ofCaller: number;
  readonly mostWaitingOfCaller: number;
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
  /** The length of all pieces. If they turn out to be shorter or longer, the response is cut. */
  readonly bytes: number;
  /** Read no faster than the caller reads them. */
  readonly pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
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
 * The limits are low because pages can be large. If a caller reads slowly or not at all, other callers can still use
 * the other slot.
 */
const SHARED_SLOTS: PageSlots = { atATime: 2, mostWaiting: 16, ofCaller: 1, mostWaitingOfCaller: 8 };
const RETRY_AFTER_MS = 1_000;
/** How long a caller can read nothing before its response is cut, in milliseconds. */
const STALLED_MS = 30_000;

/** Create a handler that serves these pages. Other requests go to `otherwise`. */
export function serveHttpPages(pages: readonly HttpPage[], serving: PageServing, otherwise: HttpHandler): HttpHandler {
  const shared = new SlotLimiter(SHARED_SLOTS);
  const byPath = new Map(
    pages.map((page) => {
      const slots = "content" in page || page.limits === undefined ? shared : new SlotLimiter(page.limits);
      return [page.path, { page, slots }];
    }),
  );
  return (request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const found = byPath.get(path);
    if (found === undefined) return otherwise(request, response);
    const { page, slots } = found;
    if ("content" in page) return answerPublic(page, request, response);
    if (request.method !== "GET") {
      const headers = { "content-type": "text/plain", allow: "GET" };
      return sendWhole(request, response, 405, headers, "this page only supports GET\n");
    }
    const startMs = serving.clock.nowMs();
    const done = (error?: ConnectError) => {
      serving.observe(`GET ${path}`, codeName(error?.code), serving.clock.nowMs() - startMs);
    };
    answerPage({ page, query: new URLSearchParams(query), request, response, slots }, serving).then(
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

/** A Limiter with a limit of waiting requests. */
class SlotLimiter {
  readonly #slots: PageSlots;
  readonly #limiter: Limiter;

  constructor(slots: PageSlots) {
    this.#slots = slots;
    this.#limiter = new Limiter(slots.atATime, slots.ofCaller);
  }

  /** Wait for a slot. Returns a function that releases it. Throws OVERLOADED or TOO_MANY_CALLS. */
  async enter(signal: AbortSignal, party: string): Promise<() => void> {
    const { mostWaiting, ofCaller, mostWaitingOfCaller } = this.#slots;
    if (!this.#limiter.isFree && this.#limiter.waiting >= mostWaiting) {
      throw refuse("OVERLOADED", "too many pages are being created; try again", { retryAfterMs: RETRY_AFTER_MS });
    }
    if (this.#limiter.waitingOf(party) >= mostWaitingOfCaller) {
      const inProgress = ofCaller === 1 ? "one page" : `${ofCaller} pages`;
      const message = `a caller can have ${inProgress} in progress and ${mostWaitingOfCaller} waiting; try again`;
      throw refuse("TOO_MANY_CALLS", message, { retryAfterMs: RETRY_AFTER_MS });
    }
    return this.#limiter.enter(signal, party);
  }
}

/** Answer without a slot, because the response is small enough for the buffers of the connection. */
function answerPublic({ contentType, content }: PublicPage, request: HttpRequest, response: HttpResponse): void {
  if (request.method === "GET") {
    sendWhole(request, response, 200, { "content-type": contentType }, content);
  } else if (request.method === "HEAD") {
    request.resume();
    writeHead(response, 200, { "content-type": contentType, "content-length": String(content.length) });
    response.end();
  } else {
    const headers = { "content-type": "text/plain", allow: "GET, HEAD" };
    sendWhole(request, response, 405, headers, "this page only supports GET and HEAD\n");
  }
}

interface Asked {
  readonly page: CreatedPage;
  readonly query: URLSearchParams;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly slots: SlotLimiter;
}

async function answerPage(asked: Asked, serving: PageServing): Promise<void> {
  const { response } = asked;
  const ending = new AbortController();
  const onClose = () => ending.abort(new Error("the caller disconnected"));
  // Listen before the first await, because a disconnect is reported only once.
  response.once("close", onClose);
  try {
    const party = await admit(asked, serving);
    await makePage(asked, party, ending, serving.clock);
  } finally {
    response.off("close", onClose);
  }
}

async function makePage(asked: Asked, party: string, ending: AbortController, clock: Clock): Promise<void> {
  const { page, query, slots } = asked;
  ending.signal.throwIfAborted();
  const over = new AbortController();
  clock.sleep(page.deadlineMs, over.signal).then(
    () => ending.abort(refuse("DEADLINE_EXCEEDED", `the page took longer than ${page.deadlineMs / 1_000} s`)),
    // Ignore the rejection: the sleep was aborted, because the page was sent in time.
    () => {},
  );
  try {
    const leave = await slots.enter(ending.signal, party);
    try {
      const answer = await page.answer({ query, signal: ending.signal });
      ending.signal.throwIfAborted();
      await send(asked, answer, ending.signal, clock);
    } finally {
      leave();
    }
  } finally {
    over.abort();
  }
}

/** Check the credential of a request. Returns the party that the request belongs to. */
async function admit({ page, query, request }: Asked, serving: PageServing): Promise<string> {
  const { authorization = null } = request.headers;
  const peer = addressOf(peerOf(request.socket), request.headers, serving.clientAddress);
  const attempt = authorization === null ? null : tokenAttempt(peer, authorization);
  const { caller: needed } = page;
  if (typeof needed === "function") {
    const ofNode: Attempt | null = attempt && { ...attempt, kind: "node" };
    await countAttempt(ofNode, serving.failures, () => needed({ authorization, query }));
    return peer.replace(/:\d+$/, "");
  }
  const caller = await countAttempt(attempt, serving.failures, (isKnown) =>
    findCaller(needed, authorization, serving.authenticate, () => {
      isKnown();
      trustConnection(request, "known");
    }),
  );
  return actorOf(caller);
}

/** Count an attempt as passed or failed. `prove` can report that the caller is known before it refuses the request. */
async function countAttempt<T>(
  attempt: Attempt | null,
  failures: FailedAttempts | undefined,
  prove: (isKnown: () => void) => Promise<T>,
): Promise<T> {
  if (attempt === null || failures === undefined) return prove(() => {});
  failures.check(attempt);
  let isKnown = false;
  try {
    const proven = await prove(() => {
      isKnown = true;
    });
    failures.passed(attempt);
    return proven;
  } catch (error) {
    if (isKnown) failures.passed(attempt);
    else failures.ended(attempt, error);
    throw error;
  }
}

/** Send a page no faster than the caller reads it. The caller's slot is held until the page is sent. */
async function send(
  { request, response }: Asked,
  { contentType, bytes, pieces }: PageAnswer,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  request.resume();
  writeHead(response, 200, { "content-type": contentType, "content-length": String(bytes) });
  // Use one type for both kinds of responses, which differ only in the overloads of their methods.
  const out = response as { write(piece: Uint8Array): boolean } & NodeJS.EventEmitter;
  let left = bytes;
  for await (const piece of pieces) {
    signal.throwIfAborted();
    left -= piece.length;
    if (left < 0) break;
    if (!out.write(piece)) await drained(out, signal, clock);
  }
  if (left !== 0) throw new Error(`the length of a page is not ${bytes}, as its header says`);
  response.end();
}

/** Wait until the caller has read what was written. Rejects if it reads nothing for too long. */
async function drained(out: NodeJS.EventEmitter, signal: AbortSignal, clock: Clock): Promise<void> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  try {
    await Promise.race([
      once(out, "drain", { signal: until }),
      clock.sleep(STALLED_MS, until).then(() => {
        throw refuse("DEADLINE_EXCEEDED", `the caller has read nothing for ${STALLED_MS / 1_000} s`);
      }),
    ]);
  } finally {
    over.abort();
  }
}
