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
 * How many answers with pages a process makes at a time. A page has 1 MiB, and takes a few times as much while it is
 * made.
 */
export interface PageTurns {
  /** Default 4: more would be done no sooner, and each takes memory and a connection to the record. */
  readonly atATime: number;
  /** Calls that wait for their turn. Default 64. */
  readonly waiting: number;
  /** How long a call waits, in milliseconds. Default 5000. */
  readonly waitMs: number;
}

const DEFAULT_LIMITS: PageTurns = { atATime: 4, waiting: 64, waitMs: 5_000 };
const RETRY_AFTER_MS = 1_000;

/**
 * Let methods that read pages take turns. Whatever keeps nodes safe, and whatever operators order, has no pages or
 * changes something: it never waits here. Of those who wait the next is of the caller with the fewest at work. Refuses
 * with OVERLOADED.
 */
export function limitPages(options: Partial<PageTurns> & { readonly clock: Clock }): Interceptor {
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
    // It got its turn, or gave up.
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
  const message = "too many pages are being read from this process at present; try again";
  return refuse("OVERLOADED", message, { retryAfterMs: RETRY_AFTER_MS });
}
