import { constants } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { mapError, refuse } from "@rollcall/errors";
import type { Identity } from "../calls/find-caller.ts";
import type { HttpRequest } from "../calls/http-handler.ts";
import type { LargeTurn } from "../calls/large-turn.ts";
import { checkSize, LARGE_BYTES } from "../calls/message-parts.ts";
import { connectionOf } from "../connections/connection.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { type BodyShape, checkedBody, emptyBody, type MessagesCheck } from "./checked-body.ts";

/** How to read the messages of a request, which are all of the same type. */
export interface RequestedMessages extends Omit<MessagesCheck, "source"> {
  readonly shape: BodyShape;
  /** The identity of the caller; null if the request is decoded for any caller. */
  readonly identity: Promise<Identity> | null;
  /** The turn of the call, in case the message is large. */
  readonly turn: LargeTurn;
}

/**
 * The body of a request, with each message in one piece and decompressed. Fails with MESSAGE_TOO_LARGE if a message has
 * more parts than any valid message. Fails with CANCELLED if the caller resets the call or its connection breaks.
 * Without this, Node would end the body as if it were complete, or with an ECONNRESET that could be mistaken for an
 * error of the store.
 */
export function requestBody(
  request: HttpRequest,
  { schema, shape, mostBytes, identity, isStream, turn }: RequestedMessages,
): AsyncIterable<Uint8Array> {
  const source = connectionOf(request)?.address ?? "";
  const raw = rawBody(request, isStream, source);
  const check = { schema, source, mostBytes, isStream };
  // The messages of a stream do not wait, because a stream can last for days.
  const body = checkedBody(isStream ? raw : inTurn(raw, shape, turn), shape, check);
  return forConnect(shape.framing === "whole" ? declaredBody(request, mostBytes, body) : body, shape, identity, turn);
}

/**
 * The body, if the caller is identified or need not be. Otherwise one empty message: the call will be refused, so
 * nothing of the body is read. Errors are converted, because Connect would send a refusal as INTERNAL.
 */
async function* forConnect(
  body: AsyncIterable<Uint8Array>,
  shape: BodyShape,
  identity: Promise<Identity> | null,
  turn: LargeTurn,
): AsyncGenerator<Uint8Array> {
  try {
    if (identity === null || (await identity).ok) yield* body;
    else yield* emptyBody(shape);
  } catch (error) {
    throw mapError(error);
  } finally {
    turn.end();
  }
}

/** A body that waits for its turn before more of it is read, if it is large or can become large. */
async function* inTurn(
  body: AsyncIterable<Uint8Array>,
  { unpack }: BodyShape,
  turn: LargeTurn,
): AsyncGenerator<Uint8Array> {
  const mostBytes = unpack === null ? LARGE_BYTES : 0;
  let size = 0;
  for await (const chunk of body) {
    const wasLarge = size > mostBytes;
    size += chunk.byteLength;
    if (size > mostBytes && !wasLarge) await turn.begin();
    yield chunk;
  }
}

/** The body of a single message. It is refused before it has arrived if its declared length exceeds the limit. */
async function* declaredBody(request: HttpRequest, mostBytes: number, body: AsyncIterable<Uint8Array>) {
  checkSize(Number(request.headers["content-length"] ?? 0), mostBytes);
  yield* body;
}

async function* rawBody(request: HttpRequest, isStream: boolean, source: string): AsyncGenerator<Uint8Array> {
  try {
    // Keep the connection open when a partly read request is refused, until the refusal has been sent.
    const chunks = request.iterator({ destroyOnReturn: false });
    yield* chunks as AsyncIterable<Uint8Array>;
  } catch (error) {
    await loopBudget.turn(source);
    throw refuse("CANCELLED", "the caller's connection broke", { cause: error });
  }
  // Wait for a reset, so that a handler does not mistake the end of the body for a regular one: a client on Node ends
  // its half of the stream and resets the stream right after.
  if (isStream) await turn();
  if (!request.aborted && !isReset(request)) return;
  await loopBudget.turn(source);
  throw refuse("CANCELLED", "the caller disconnected");
}

function isReset(request: HttpRequest): boolean {
  if (!("stream" in request)) return false;
  return (request.stream?.rstCode ?? 0) !== constants.NGHTTP2_NO_ERROR;
}
