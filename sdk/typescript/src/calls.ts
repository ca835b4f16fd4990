// How one call is made: deadline, credentials, request ids, retries and errors, alike in Node and in browsers.
import { create, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { ConfigurationError, errorOf, TimedOutError } from "./errors.ts";
import { type RetryPolicy, waitBeforeRetry } from "./retry.ts";
import { MIN_REVISION_HEADER, REVISION_HEADER, type SeenRevision } from "./seen-revision.ts";
import { pause } from "./time.ts";

/** What holds for every call to one address. */
export interface Calling {
  /** Connects; called for each attempt, and cheap once it has succeeded. */
  readonly connect: () => Promise<Transport>;
  /** The token to send; null for none. Called for each attempt. */
  readonly token: () => Promise<string | null>;
  /** What a call may take, its retries included, unless it says otherwise. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  /** One for all addresses of a control plane. */
  readonly seen: SeenRevision;
}

/** A transport that makes calls as every client of Rollcall does. */
export function callingTransport(calling: Calling): Transport {
  return {
    unary: async (method, signal, timeoutMs, header, input, contextValues) => {
      const endsAtMs = performance.now() + (timeoutMs || calling.timeoutMs);
      const { message, isRepeatable } = prepared(method, input);
      for (let attempt = 1; ; attempt++) {
        try {
          const headers = await authorized(calling, header);
          const transport = await calling.connect();
          const leftMs = Math.ceil(endsAtMs - performance.now());
          if (leftMs <= 0) throw new TimedOutError({ code: 4, message: "the deadline passed" });
          const answer = await transport.unary(method, signal, leftMs, headers, message, contextValues);
          calling.seen.answered(answer.header.get(REVISION_HEADER));
          return answer;
        } catch (cause) {
          // A call that its caller has ended was not refused: it fails with the signal's reason, as fetch does.
          signal?.throwIfAborted();
          const failure = errorOf(cause);
          if (failure instanceof ConfigurationError) throw failure;
          calling.seen.failed(failure.reason);
          const wait = waitBeforeRetry(calling.retry, failure, { attempt, isRepeatable, random: Math.random() });
          if (wait === null || performance.now() + wait >= endsAtMs) throw failure;
          await pause(wait, signal);
          signal?.throwIfAborted();
        }
      }
    },
    stream: async (method, signal, timeoutMs, header, input, contextValues) => {
      try {
        const headers = await authorized(calling, header);
        const transport = await calling.connect();
        const answer = await transport.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: typedMessages(answer.message, calling.seen, signal) };
      } catch (cause) {
        signal?.throwIfAborted();
        throw errorOf(cause);
      }
    },
  };
}

async function* typedMessages<T extends object>(
  messages: AsyncIterable<T>,
  seen: SeenRevision,
  signal: AbortSignal | undefined,
): AsyncIterable<T> {
  try {
    for await (const message of messages) {
      if ("revision" in message && typeof message.revision === "bigint") seen.heard(message.revision);
      yield message;
    }
  } catch (cause) {
    signal?.throwIfAborted();
    const failure = errorOf(cause);
    if (!(failure instanceof ConfigurationError)) seen.failed(failure.reason);
    throw failure;
  }
}

async function authorized({ token, seen }: Calling, header: HeadersInit | undefined): Promise<Headers> {
  const headers = new Headers(header);
  if (seen.header !== null && !headers.has(MIN_REVISION_HEADER)) headers.set(MIN_REVISION_HEADER, seen.header);
  const proof = await token();
  if (proof !== null) headers.set("authorization", `Bearer ${proof}`);
  return headers;
}

/** The message to send, and whether sending it twice has one effect. A missing request id is made here. */
export function prepared<I extends DescMessage>(
  method: DescMethod & { readonly input: I },
  input: MessageInitShape<I>,
): { readonly message: MessageInitShape<I>; readonly isRepeatable: boolean } {
  if (method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS)
    return { message: input, isRepeatable: true };
  const hasId = method.input.fields.some(({ localName }) => localName === "requestId");
  if (!hasId || (input as { requestId?: string }).requestId) return { message: input, isRepeatable: hasId };
  const copy: object = { ...create(method.input, input), requestId: newRequestId() };
  return { message: copy as MessageInitShape<I>, isRepeatable: true };
}

/** Not crypto.randomUUID(): a page that came over clear text has none. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
