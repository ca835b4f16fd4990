import { splitBySize } from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { CallStore, StoredEvent } from "@rollcall/store";
import { compileEventFilter, type EventFilter, type EventHub } from "./event-hub.ts";
import type { WindowPiece } from "./log-window.ts";
import { watcherTooSlow } from "./resume-token.ts";
import { MESSAGE_BYTES, sizeOfEvent } from "./sizes.ts";
import { Waiter } from "./waiter.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** Where a watch begins. */
export type WatchStart =
  | { readonly kind: "now" }
  | { readonly kind: "beginning" }
  | { readonly kind: "after"; readonly revision: bigint; readonly logId: string };

/** One message of a watch; a bookmark when it has no events. */
export interface EventMessage {
  readonly events: readonly StoredEvent[];
  readonly logId: string;
  /** Everything that is wanted up to here has been sent. */
  readonly revision: bigint;
}

/** What a watch of events needs. */
export interface EventWatch {
  readonly store: CallStore;
  readonly hub: EventHub;
  readonly clock: Clock;
  readonly limits: WatchLimits;
  readonly filter: EventFilter;
  readonly start: WatchStart;
  readonly signal: AbortSignal;
}

/**
 * Watch the log: what lies before the window of the hub is read from the table in bounded batches, then it goes on in
 * the window. The cursor alone says what comes next, so the switch can neither leave out nor repeat anything. It ends
 * by throwing: the signal's reason, WATCHER_TOO_SLOW, REVISION_COMPACTED or INVALID_RESUME_TOKEN.
 */
export async function* watchEvents(watch: EventWatch): AsyncGenerator<EventMessage, never> {
  const { hub, clock, limits, signal } = watch;
  await hub.ready(signal);
  const { logId, revision } = await findStart(watch);
  const read = createReader(watch, logId);
  const waiter = new Waiter();
  const leave = hub.join(waiter);
  signal.addEventListener("abort", waiter.wake, { once: true });
  try {
    let cursor = revision;
    // It says at once where it begins: a client that is cut off within the first events has a token to go on from.
    yield { events: [], logId, revision: cursor };
    let sentAtMs = clock.nowMs();
    for (;;) {
      const { items, through } = await read(cursor);
      const isBookmarkDue = clock.nowMs() - sentAtMs >= (limits.bookmarkMs * 3) / 4;
      const moved = through > cursor;
      const lastItem = items.at(-1);
      for (const events of splitBySize(items, sizeOfEvent, ONE_MESSAGE)) {
        const last = events.at(-1);
        // Before the last part the message stands for its own last event.
        cursor = last === lastItem ? through : (last?.revision ?? cursor);
        yield { events, logId, revision: cursor };
        sentAtMs = clock.nowMs();
      }
      cursor = through;
      if (items.length === 0 && isBookmarkDue) {
        yield { events: [], logId, revision: cursor };
        sentAtMs = clock.nowMs();
      }
      if (!moved) await waiter.rest();
    }
  } finally {
    leave();
    signal.removeEventListener("abort", waiter.wake);
  }
}

/** As many events as one read has, within the bytes of a message. */
const ONE_MESSAGE = { items: Number.POSITIVE_INFINITY, bytes: MESSAGE_BYTES };

async function findStart({ store, hub, start }: EventWatch) {
  switch (start.kind) {
    case "now":
      return { logId: store.logId(), revision: (await hub.ends()).head };
    case "beginning":
      return { logId: store.logId(), revision: (await hub.ends()).compacted };
    case "after":
      await hub.checkPosition(start.logId, start.revision);
      return start;
  }
}

/** Reads what comes after a cursor, wherever that is. */
function createReader({ hub, filter, signal }: EventWatch, logId: string) {
  const isWanted = compileEventFilter(filter);
  let isLive = false;
  return async (cursor: bigint): Promise<WindowPiece<StoredEvent>> => {
    signal.throwIfAborted();
    await hub.checkLog(logId);
    const recent = hub.readWindow(cursor);
    if (recent !== null) {
      isLive = true;
      return isWanted === null ? recent : { ...recent, items: recent.items.filter(isWanted) };
    }
    // It could catch up from the table, but would soon be as far behind again: its client learns it, and how to go on.
    if (isLive) throw watcherTooSlow({ kind: "position", logId, revision: cursor });
    return hub.readTable(cursor, filter, signal);
  };
}
