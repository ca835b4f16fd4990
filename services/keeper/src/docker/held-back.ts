import type { Clock } from "@rollcall/process";

/** Options for delaying pieces. */
export interface HoldOptions {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  readonly holdMs: number;
  /** Number of held bytes at which reading pauses. */
  readonly mostBytes: number;
}

interface Held {
  readonly piece: Uint8Array;
  readonly dueMs: number;
}

/**
 * Yield each piece some time after its arrival. Pieces that are still held when the source ends or fails are dropped.
 */
export async function* heldBack(source: AsyncIterable<Uint8Array>, options: HoldOptions): AsyncGenerator<Uint8Array> {
  const { clock, holdMs, mostBytes } = options;
  const pieces = source[Symbol.asyncIterator]();
  const held: Held[] = [];
  let heldBytes = 0;
  let coming: Promise<IteratorResult<Uint8Array>> | null = null;
  for (;;) {
    const [first] = held;
    const waitMs = first === undefined ? 0 : first.dueMs - clock.nowMs();
    if (first !== undefined && waitMs <= 0) {
      held.shift();
      heldBytes -= first.piece.length;
      yield first.piece;
      continue;
    }
    if (heldBytes >= mostBytes) {
      await clock.sleep(waitMs, NEVER);
      continue;
    }
    coming ??= pieces.next();
    const came = first === undefined ? await coming : await within(coming, waitMs, clock);
    if (came === null) continue;
    coming = null;
    if (came.done) return;
    heldBytes += came.value.length;
    held.push({ piece: came.value, dueMs: clock.nowMs() + holdMs });
  }
}

const NEVER = new AbortController().signal;

/** The value of a promise, or null if the promise does not settle in time. */
async function within<T>(coming: Promise<T>, ms: number, clock: HoldOptions["clock"]): Promise<T | null> {
  const over = new AbortController();
  const late = clock.sleep(ms, over.signal).then(
    () => null,
    () => null,
  );
  try {
    return await Promise.race([coming, late]);
  } finally {
    over.abort();
  }
}
