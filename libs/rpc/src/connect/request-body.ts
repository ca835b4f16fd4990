import { constants } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import type { DescMessage } from "@bufbuild/protobuf";
import { refuse } from "@rollcall/errors";
import type { HttpRequest } from "../calls/http-handler.ts";
import { connectionOf } from "../connections/connection.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { type BodyShape, checkedBody } from "./checked-body.ts";

/** What a request brings: messages of this type. */
export interface RequestedMessages {
  readonly schema: DescMessage;
  readonly shape: BodyShape;
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
  { schema, shape, isStream }: RequestedMessages,
): AsyncIterable<Uint8Array> {
  const source = connectionOf(request)?.address ?? "";
  return checkedBody(rawBody(request, isStream, source), shape, { schema, source });
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
