import { Batcher, type Clock } from "@rollcall/process";
import type { CallStore } from "../database/store.ts";
import { currentRevision } from "./events.ts";
import type { EventFeed } from "./feed.ts";

/** What a reader of the log needs. */
export interface CallLogReaderOptions {
  readonly store: CallStore;
  /** The process's feed, which is started when a call has to wait for it. */
  readonly feed: Pick<EventFeed, "position" | "logId" | "start" | "caughtUpTo">;
  readonly clock: Clock;
}

/** Most calls that ask for the end of the log at the same time: more than a process serves. */
const MOST_ASKING = 50_000;

/**
 * How far the log goes and how far this process has read it, for calls that name a revision. The database is asked only
 * for a revision that is higher than all that are known; calls that ask at the same time share one read.
 */
export class CallLogReader {
  readonly #store: CallStore;
  readonly #feed: CallLogReaderOptions["feed"];
  readonly #ends: Batcher<null, bigint>;
  /** Which log the known end belongs to: a restore replaces the log. */
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

  /** Everything up to here has been read. */
  get position(): bigint {
    return this.#feed.logId === this.#store.logId() ? this.#feed.position : 0n;
  }

  /** A revision up to which the log goes: `wanted` or more if it goes that far. Rejects with the store's error. */
  async end(wanted: bigint): Promise<bigint> {
    const { logId, end } = this.#known;
    if (logId === this.#store.logId() && end >= wanted) return end;
    const { position } = this;
    return position >= wanted ? position : this.#ends.submit(null);
  }

  /** The log goes at least this far. */
  noteEnd(revision: bigint): void {
    const logId = this.#store.logId();
    if (logId !== this.#known.logId || revision > this.#known.end) this.#known = { logId, end: revision };
  }

  /** Resolves once everything up to a revision has been read; rejects with the signal's reason or the store's error. */
  async caughtUpTo(revision: bigint, signal: AbortSignal): Promise<void> {
    if (this.position >= revision) return;
    await this.#feed.start();
    await this.#feed.caughtUpTo(revision, signal);
  }
}
