// Makes one call, in the same way for Node and browsers. Adds deadlines, credentials and request ids, retries,
// and converts errors.
import { create, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type Transport } from "@connectrpc/connect";
import { ConfigurationError, errorOf, SilentStreamError, TimedOutError, UnreachableError } from "./errors.ts";
import { attemptLimitMs, type RetryPolicy, SHORTEST_ATTEMPT_MS, waitBeforeRetry } from "./retry.ts";
import { MIN_REVISION_HEADER, REVISION_HEADER, type SeenRevision } from "./seen-revision.ts";
import { pause } from "./time.ts";

/** The path that one attempt of a call uses. */
export interface Path {
  readonly transport: Transport;
  /** Make later calls use a new path, because this one received nothing. Call this before `release`. */
  readonly replace: () => void;
  /** End the attempt. Call this only once. */
  readonly release: () => void;
}

/** The settings for every call to one address. */
export interface Calling {
  /** Connect. Called for each attempt, and cheap once connected. */
  readonly connect: () => Promise<Path>;
  /** The token to send; null if there is none. Called for each attempt. */
  readonly token: () => Promise<string | null>;
  /** The time limit of a call, including retries, unless the call sets its own. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  /** The highest revision seen, shared by all addresses of a control plane. */
  readonly seen: SeenRevision;
}

const NO_ANSWER = new UnreachableError({ code: Code.Unavailable, message: "no answer" });

/** Create a transport that makes calls in the same way as every Rollcall client. */
export function callingTransport(calling: Calling): Transport {
  return {
    unary: async (method, signal, timeoutMs, header, input, contextValues) => {
      const mostMs = timeoutMs || calling.timeoutMs;
      const endsAtMs = performance.now() + mostMs;
      const { message, isRepeatable } = prepared(method, input);
      for (let attempt = 1; ; attempt++) {
        const limitMs = attemptLimitMs(calling.retry, { timeoutMs: mostMs, attempt, isRepeatable });
        try {
          const headers = await authorized(calling, header);
          const leftMs = Math.ceil(Math.min(limitMs ?? mostMs, endsAtMs - performance.now()));
          const answer = await attemptCall(calling, leftMs, (transport) =>
            transport.unary(method, signal, leftMs, headers, message, contextValues),
          );
          calling.seen.answered(answer.header.get(REVISION_HEADER));
          return answer;
        } catch (cause) {
          // If the caller has aborted the call, fail with the signal's reason, like fetch.
          signal?.throwIfAborted();
          const failure = errorOf(cause);
          if (failure instanceof ConfigurationError) throw failure;
          calling.seen.failed(failure.reason);
          // If the attempt had a limit, only the attempt has timed out and not the call.
          const seen = limitMs !== null && failure instanceof TimedOutError ? NO_ANSWER : failure;
          const wait = waitBeforeRetry(calling.retry, seen, { attempt, isRepeatable, random: Math.random() });
          if (wait === null || performance.now() + wait >= endsAtMs) throw failure;
          await pause(wait, signal);
          signal?.throwIfAborted();
        }
      }
    },
    stream: async (method, signal, timeoutMs, header, input, contextValues) => {
      let end = () => {};
      try {
        const headers = await authorized(calling, header);
        const path = await calling.connect();
        end = endOnce(path, signal);
        const answer = await path.transport.stream(method, signal, timeoutMs, headers, input, contextValues);
        return { ...answer, message: typedMessages(answer.message, { seen: calling.seen, signal, end }) };
      } catch (cause) {
        end();
        signal?.throwIfAborted();
        throw errorOf(cause);
      }
    },
  };
}

async function attemptCall<T>(
  { connect }: Calling,
  limitMs: number,
  call: (transport: Transport) => Promise<T>,
): Promise<T> {
  const path = await connect();
  try {
    if (limitMs <= 0) throw new TimedOutError({ code: Code.DeadlineExceeded, message: "the deadline passed" });
    return await call(path.transport);
  } catch (cause) {
    const failure = errorOf(cause);
    // The path may be dead only if the server itself did not report the timeout and the attempt had at least
    // SHORTEST_ATTEMPT_MS.
    const isSilent = failure instanceof TimedOutError && failure.reason === "" && limitMs >= SHORTEST_ATTEMPT_MS;
    if (isSilent) path.replace();
    throw cause;
  } finally {
    path.release();
  }
}

/**
 * Create a function that releases a stream's path. It is called when the signal is aborted or when the stream
 * has ended for another reason. Only the first call has an effect.
 */
function endOnce(path: Path, signal: AbortSignal | undefined): () => void {
  let isOpen = true;
  const end = () => {
    if (!isOpen) return;
    isOpen = false;
    signal?.removeEventListener("abort", end);
    if (signal?.reason instanceof SilentStreamError) path.replace();
    path.release();
  };
  signal?.addEventListener("abort", end, { once: true });
  return end;
}

async function* typedMessages<T extends object>(
  messages: AsyncIterable<T>,
  { seen, signal, end }: { readonly seen: SeenRevision; readonly signal: AbortSignal | undefined; end(): void },
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
  } finally {
    end();
  }
}

async function authorized({ token, seen }: Calling, header: HeadersInit | undefined): Promise<Headers> {
  const headers = new Headers(header);
  if (seen.header !== null && !headers.has(MIN_REVISION_HEADER)) headers.set(MIN_REVISION_HEADER, seen.header);
  const proof = await token();
  if (proof !== null) headers.set("authorization", `Bearer ${proof}`);
  return headers;
}

/**
 * The message to send, and whether sending it twice has the same effect as sending it once. Adds a missing
 * request id.
 */
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

/** Do not use crypto.randomUUID(), because pages loaded over clear text do not have it. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
