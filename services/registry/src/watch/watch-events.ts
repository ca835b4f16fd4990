import type { Clock } from "@rollcall/process";
import type { CallStore, EventRow } from "@rollcall/store";
import type { Sleeper } from "./crowd.ts";
import { compileEventFilter, type EventFilter, type EventHub, type EventPredicate } from "./event-hub.ts";
import type { WindowPiece } from "./log-window.ts";
import { watcherTooSlow } from "./resume-token.ts";
import type { WatchLimits } from "./watch-limits.ts";

export type WatchStart =
  | { readonly kind: "now" }
  | { readonly kind: "beginning" }
  | { readonly kind: "after"; readonly revision: bigint; readonly logId: string };

/** The dependencies and parameters of a watch. */
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

/** Creates the messages of a watch. */
export interface EventMessages<Message> {
  /** The messages for a piece of the log that has at least one event. */
  of(piece: WindowPiece<EventRow>, logId: string): readonly Message[];
  /** A message that says that all matching events up to a revision have been sent. */
  bookmark(revision: bigint, logId: string): Message;
}

interface Asked<Message> {
  resolve(result: IteratorResult<Message>): void;
  reject(error: unknown): void;
}

const DONE = { done: true, value: undefined } as const;

/**
 * A watch of the event log. It reads events before the hub's window from the table, in bounded batches, and then
 * continues in the window. Only the cursor decides which event is next, so the switch cannot skip or repeat anything.
 * The watch ends by throwing the signal's reason, WATCHER_TOO_SLOW, REVISION_COMPACTED or INVALID_RESUME_TOKEN.
 *
 * This is a class, because a generator would cost more for each of thousands of watchers, and for each message. It has
 * one reader, which requests a message only after it has received the previous one.
 */
export class EventStream<Message> implements AsyncIterableIterator<Message>, Sleeper {
  readonly #watch: EventWatch<Message>;
  readonly #isWanted: EventPredicate | null;
  #logId = "";
  /** Everything up to this revision was sent, or is in `#parts`. */
  #cursor = 0n;
  #sentAtMs = 0;
  /** Messages to send, in reverse order. */
  #parts: Message[] = [];
  #asked: Asked<Message> | null = null;
  #leave: (() => void) | null = null;
  /** Whether the watch has reached the window. From then on, it never reads the table again. */
  #isLive = false;
  #isReading = false;
  /** Whether wake() was called since the read started. */
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

  /** Called when the log has grown, some time has passed, or the signal has aborted. */
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
      // Send the start position immediately, so that a client that is disconnected within the first events has a token
      // to resume from.
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

  /** Resolve the reader's request with the next message. If there is none, the reader waits. */
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

  /** Process a batch from the window. Returns whether the cursor moved. */
  #take(piece: WindowPiece<EventRow>): boolean {
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

  /** Read the table, for a reader that is behind the window. */
  async #readTable(): Promise<void> {
    const { hub, filter, signal } = this.#watch;
    this.#isReading = true;
    try {
      await hub.checkLog(this.#logId);
      // The watch could catch up from the table, but would soon be behind again. End it, so that the client notices
      // and resumes from the token.
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

  /**
   * End the watch, once. Without this check, a read that fails after its reader has left would end the watch again.
   */
  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#leave?.();
    this.#watch.signal.removeEventListener("abort", this.wake);
  }
}
