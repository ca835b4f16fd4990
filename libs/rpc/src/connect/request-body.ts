import { constants } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { refuse } from "@rollcall/errors";
import type { Identity } from "../calls/find-caller.ts";
import type { HttpRequest } from "../calls/http-handler.ts";
import type { BodyCheck } from "../calls/message-parts.ts";
import { connectionOf } from "../connections/connection.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { type BodyShape, checkedBody, emptyBody } from "./checked-body.ts";

/** What a request brings: messages of this type. */
export interface RequestedMessages extends Omit<BodyCheck, "source"> {
  readonly shape: BodyShape;
  /** Whose request it is; null where it is decoded for everyone. */
  readonly identity: Promise<Identity> | null;
  /** Whether there may be several. */
  readonly isStream: boolean;
}

/**
 * The body of a request, each of its messages in one piece and unpacked, failing as MESSAGE_TOO_LARGE when one has more
 * parts than any needs, and as CANCELLED when the caller resets the call or its connection breaks. Node ends such a
 * body as if it were complete, or with an ECONNRESET that could be taken for the store's.
 */
export function requestBody(
  request: HttpRequest,
  { schema, shape, mostBytes, identity, isStream }: RequestedMessages,
): AsyncIterable<Uint8Array> {
  const source = connectionOf(request)?.address ?? "";
  const body = checkedBody(rawBody(request, isStream, source), shape, { schema, source, mostBytes });
  return identity === null ? body : ofKnownCaller(body, shape, identity);
}

/** The body of a caller that is identified. Nothing of another's is read: the call is refused with an empty message. */
async function* ofKnownCaller(
  body: AsyncIterable<Uint8Array>,
  shape: BodyShape,
  identity: Promise<Identity>,
): AsyncGenerator<Uint8Array> {
  if ((await identity).ok) yield* body;
  else yield* emptyBody(shape);
}

async function* rawBody(request: HttpRequest, isStream: boolean, source: string): AsyncGenerator<Uint8Array> {
  try {
    // A request that is refused half read must not take its connection with it before the refusal has been sent.
    const chunks = request.iterator({ destroyOnReturn: false });
    yield* chunks as AsyncIterable<Uint8Array>;
  } catch (error) {
    await loopBudget.turn(source);
    throw refuse("CANCELLED", "the connection of the caller broke", { cause: error });
  }
  // Clients on Node close their half first and reset the stream right after: a handler must not take that for a
  // farewell.
  if (isStream) await turn();
  if (!request.aborted && !isReset(request)) return;
  await loopBudget.turn(source);
  throw refuse("CANCELLED", "the caller went away");
}

function isReset(request: HttpRequest): boolean {
  if (!("stream" in request)) return false;
  return (request.stream?.rstCode ?? 0) !== constants.NGHTTP2_NO_ERROR;
}
