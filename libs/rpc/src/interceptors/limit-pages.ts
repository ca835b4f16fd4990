import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Interceptor } from "@connectrpc/connect";
import { refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import type { Clock } from "@rollcall/process";
import { callerKey } from "../calls/call-context.ts";
import { Limiter } from "../calls/limiter.ts";

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/**
 * Limits of responses with pages that a process creates at the same time. A page can be 1 MiB large, and needs
 * several times as much memory while it is created.
 */
export interface PageLimits {
  /**
   * How many responses to create at a time. Default 4. More would not finish sooner, because each takes memory and a
   * database connection.
   */
  readonly atATime: number;
  /** Maximum number of waiting calls. Default 64. */
  readonly waiting: number;
  /** How long a call can wait, in milliseconds. Default 3000. */
  readonly waitMs: number;
}

const DEFAULT_LIMITS: PageLimits = { atATime: 4, waiting: 64, waitMs: 3_000 };
const RETRY_AFTER_MS = 1_000;

/**
 * Make methods that read pages take turns. The next call is one of the caller with the fewest running calls. Refuses
 * a call with OVERLOADED if too many calls wait or it waits too long.
 *
 * Methods that keep nodes safe, or that carry out operators' orders, either return no pages or change something, so
 * they never wait here.
 */
export function limitPages(options: Partial<PageLimits> & { readonly clock: Clock }): Interceptor {
  const { clock, ...given } = options;
  const limits = { ...DEFAULT_LIMITS, ...given };
  const limiter = new Limiter(limits.atATime);
  return (next) => async (request) => {
    if (!readsPages(request.method)) return await next(request);
    if (!limiter.isFree && limiter.waiting >= limits.waiting) throw overloaded();
    const leave = await enterInTime(limiter, request, limits.waitMs, clock);
    try {
      return await next(request);
    } finally {
      leave();
    }
  };
}

async function enterInTime(
  limiter: Limiter,
  { signal: caller, contextValues }: Request,
  waitMs: number,
  clock: Clock,
): Promise<() => void> {
  const party = actorOf(contextValues.get(callerKey));
  if (limiter.isFree) return limiter.enter(caller, party);
  const waiting = new AbortController();
  const settled = new AbortController();
  const onAbort = () => waiting.abort(caller.reason);
  caller.addEventListener("abort", onAbort, { once: true });
  if (caller.aborted) onAbort();
  clock.sleep(waitMs, settled.signal).then(
    () => waiting.abort(overloaded()),
    // Ignore the rejection: the call was admitted or stopped waiting, which aborted the sleep.
    () => {},
  );
  try {
    return await limiter.enter(waiting.signal, party);
  } finally {
    settled.abort();
    caller.removeEventListener("abort", onAbort);
  }
}

function readsPages({ methodKind, idempotency, output }: DescMethod): boolean {
  return (
    methodKind === "unary" &&
    idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS &&
    output.fields.some(({ name }) => name === "next_page_token")
  );
}

function overloaded(): Error {
  const message = "too many pages are being read from this process; try again";
  return refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
}
