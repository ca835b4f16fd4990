import { Batcher, type Clock } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import { currentRevision } from "./events.ts";
import type { EventFeed } from "./feed.ts";

export interface CallLogReaderOptions {
  readonly store: CallStore;
  /** The process's feed. It is started when a call must wait for it. */
  readonly feed: Pick<EventFeed, "position" | "logId" | "start" | "caughtUpTo">;
  readonly clock: Clock;
}

/** Maximum number of concurrent calls that need the end of the log. A process never serves this many calls. */
const MOST_ASKING = 50_000;

/**
 * Reports the end of the log, and how far this process has read it, for calls that name a revision. It queries the
 * database only for a revision above all known ones, and concurrent calls share one query.
 */
export class CallLogReader {
  readonly #store: CallStore;
  readonly #feed: CallLogReaderOptions["feed"];
  readonly #ends: Batcher<null, bigint>;
  /** The known end of the log, and the id of the log's history. A restore starts another history. */
  #known: { readonly logId: string; readonly end: bigint };

  constructor({ store, feed, clock }: CallLogReaderOptions) {
    this.#store = store;
    this.#feed = feed;
    this.#known = { logId: store.logId(), end: 0n };
    this.#ends = new Batcher({
      run: async (calls) => {
        const end = await currentRevision(store.db);
        this.noteEnd(end);
        return calls.map(() => end);
      },
      ...{ maxItems: MOST_ASKING, maxQueued: MOST_ASKING, maxWaitMs: 0, clock },
    });
  }

  /** All events up to this revision have been read. */
  get position(): bigint {
    return this.#feed.logId === this.#store.logId() ? this.#feed.position : 0n;
  }

  /** Get the known end of the log: at least `wanted` if the log reaches that far. Rejects with the store's error. */
  async end(wanted: bigint): Promise<bigint> {
    const { logId, end } = this.#known;
    if (logId === this.#store.logId() && end >= wanted) return end;
    const { position } = this;
    return position >= wanted ? position : this.#ends.submit(null);
  }

  /** Record that the log has at least this revision. */
  noteEnd(revision: bigint): void {
    const logId = this.#store.logId();
    if (logId !== this.#known.logId || revision > this.#known.end) this.#known = { logId, end: revision };
  }

  /**
   * Resolves once all events up to a revision have been read. Rejects with the signal's reason or the store's error.
   */
  async caughtUpTo(revision: bigint, signal: AbortSignal): Promise<void> {
    if (this.position >= revision) return;
    await this.#feed.start();
    await this.#feed.caughtUpTo(revision, signal);
  }
}
