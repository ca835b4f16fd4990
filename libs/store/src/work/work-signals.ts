import type { EventFeed } from "../log/feed.ts";

/** Notified when work has changed; the payload says which side of it. */
export const WORK_CHANNEL = "rollcall_work";

/** What nodes should run, or what they say of it. */
export type WorkSide = "WANTED" | "OBSERVED";

/**
 * Tells the parts of a process when work has changed, over the connection of its feed. It says that there is something
 * to read and no more, and it may miss a change: followers poll as well. To be created before the feed starts.
 */
export class WorkSignals {
  readonly #followers = new Map<() => void, WorkSide | null>();

  constructor(feed: Pick<EventFeed, "listen">) {
    feed.listen(WORK_CHANNEL, (payload) => {
      for (const [wake, side] of this.#followers) if (payload === null || side === null || side === payload) wake();
    });
  }

  /** Call whenever a side has changed, or either when it is null. Returns an unsubscribe function. */
  follow(side: WorkSide | null, wake: () => void): () => void {
    // One function may follow twice.
    const follower = () => wake();
    this.#followers.set(follower, side);
    return () => this.#followers.delete(follower);
  }
}
