import type { Clock } from "@rollcall/process";
import type { CallStore, StoredEvent } from "@rollcall/store";
import type { Sleeper } from "./crowd.ts";
import { compileEventFilter, type EventFilter, type EventHub, type EventPredicate } from "./event-hub.ts";
import type { WindowPiece } from "./log-window.ts";
import { watcherTooSlow } from "./resume-token.ts";
import type { WatchLimits } from "./watch-limits.ts";

/** Where a watch begins. */
export type WatchStart =
  | { readonly kind: "now" }
  | { readonly kind: "beginning" }
  | { readonly kind: "after"; readonly revision: bigint; readonly logId: string };

/** What a watch of events needs. */
export interface EventWatch<Message> {
  readonly store: Pick<CallStore, "logId">;
  readonly hub: Pick<EventHub, "ready" | "join" | "ends" | "checkPosition" | "checkLog" | "readWindow" | "readTable">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly limits: Pick<WatchLimits, "bookmarkMs">;
  readonly filter: EventFilter;
  readonly start: WatchStart;
  readonly signal: AbortSignal;
  readonly messages: EventMessages<Message>;
}

/** Makes what a watch sends. */
export interface EventMessages<Message> {
  /** The events of a piece of the log, of which there is at least one, in messages. */
  of(piece: WindowPiece<StoredEvent>, logId: string): readonly Message[];
  /** Everything that is wanted up to here has been sent. */
  bookmark(revision: bigint, logId: string): Message;
}

interface Asked<Message> {
  resolve(result: IteratorResult<Message>): void;
  reject(error: unknown): void;
}

const DONE = { done: true, value: undefined } as const;

/**
 * A watch of the log: what lies before the window of the hub is read from the table in bounded batches, then it goes on
 * in the window. The cursor alone says what comes next, so the switch can neither leave out nor repeat anything. It
 * ends by throwing: the signal's reason, WATCHER_TOO_SLOW, REVISION_COMPACTED or INVALID_RESUME_TOKEN.
 *
 * A class, since a generator would cost each of thousands of watchers more, and each message. It is read by one reader,
 * which asks for a message when it has the one before.
 */
export class EventStream<Message> implements AsyncIterableIterator<Message>, Sleeper {
  readonly #watch: EventWatch<Message>;
  readonly #isWanted: EventPredicate | null;
  #logId = "";
  /** All up to here was sent, or is among the parts. */
  #cursor = 0n;
  #sentAtMs = 0;
  /** What was read and has to be sent, the last part first. */
  #parts: Message[] = [];
  #asked: Asked<Message> | null = null;
  #leave: (() => void) | null = null;
  /** Whether it has been in the window: then it never goes back to the table. */
  #isLive = false;
  #isReading = false;
  /** Whether it was woken since the read began. */
  #isWoken = false;
  #isEnded = false;

  constructor(watch: EventWatch<Message>) {
    this.#watch = watch;
    this.#isWanted = compileEventFilter(watch.filter);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Message>> {
    if (this.#isEnded) return Promise.resolve(DONE);
    if (this.#leave === null) return this.#begin();
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject };
      this.wake();
    });
  }

  async return(): Promise<IteratorResult<Message>> {
    this.#end();
    this.#asked?.resolve(DONE);
    this.#asked = null;
    return DONE;
  }

  /** The log has grown, or some time has passed, or the signal has aborted. */
  readonly wake = (): void => {
    this.#isWoken = true;
    if (this.#asked === null || this.#isReading) return;
    try {
      this.#answer(this.#asked);
    } catch (error) {
      this.#fail(error);
    }
  };

  async #begin(): Promise<IteratorResult<Message>> {
    const { hub, clock, messages, signal } = this.#watch;
    try {
      await hub.ready(signal);
      const { logId, revision } = await this.#findStart();
      if (this.#isEnded) return DONE;
      this.#logId = logId;
      this.#cursor = revision;
      this.#leave = hub.join(this);
      signal.addEventListener("abort", this.wake, { once: true });
      this.#sentAtMs = clock.nowMs();
      // It says at once where it begins: a client that is cut off within the first events has a token to go on from.
      return { done: false, value: messages.bookmark(revision, logId) };
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async #findStart() {
    const { store, hub, start } = this.#watch;
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

  /** Answer with what there is to send; its reader waits when there is nothing. */
  #answer(asked: Asked<Message>): void {
    const { store, hub, clock, signal } = this.#watch;
    signal.throwIfAborted();
    let value = this.#parts.pop();
    while (value === undefined) {
      const recent = store.logId() === this.#logId ? hub.readWindow(this.#cursor) : null;
      if (recent === null) {
        void this.#readTable();
        return;
      }
      this.#isLive = true;
      const hasMoved = this.#take(recent);
      value = this.#parts.pop();
      if (value === undefined && !hasMoved) return;
    }
    this.#sentAtMs = clock.nowMs();
    this.#asked = null;
    asked.resolve({ done: false, value });
  }

  /** Whether the cursor has moved. */
  #take(piece: WindowPiece<StoredEvent>): boolean {
    const { clock, limits, messages } = this.#watch;
    const isWanted = this.#isWanted;
    const { through } = piece;
    const hasMoved = through > this.#cursor;
    this.#cursor = through;
    const wanted = isWanted === null ? piece : { items: piece.items.filter(isWanted), through };
    if (wanted.items.length > 0) {
      this.#parts = messages.of(wanted, this.#logId).toReversed();
    } else if (clock.nowMs() - this.#sentAtMs >= (limits.bookmarkMs * 3) / 4) {
      this.#parts = [messages.bookmark(through, this.#logId)];
    }
    return hasMoved;
  }

  /** Read on in the table, for a reader that is behind the window. */
  async #readTable(): Promise<void> {
    const { hub, filter, signal } = this.#watch;
    this.#isReading = true;
    try {
      await hub.checkLog(this.#logId);
      // It could catch up from the table, but would soon be as far behind again: its client learns it, and how to go
      // on.
      if (this.#isLive) throw watcherTooSlow({ kind: "position", logId: this.#logId, revision: this.#cursor });
      this.#isWoken = false;
      const hasMoved = this.#take(await hub.readTable(this.#cursor, filter, signal));
      this.#isReading = false;
      if (hasMoved || this.#parts.length > 0 || this.#isWoken) this.wake();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#end();
    this.#asked?.reject(error);
    this.#asked = null;
  }

  /** Once: a read that fails after its reader has left ends it again. */
  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#leave?.();
    this.#watch.signal.removeEventListener("abort", this.wake);
  }
}
