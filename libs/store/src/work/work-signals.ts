import { type Clock, type Logger, systemClock } from "@rollcall/process";
import type { ReservedStore } from "../database/store.ts";
import { listenUntil } from "../log/notifications.ts";

/** Notified when work has changed; the payload says which side of it. */
export const WORK_CHANNEL = "rollcall_work";

/** What nodes should run, or what they say of it. */
export type WorkSide = "WANTED" | "OBSERVED";

/** What signals need. */
export interface WorkSignalsOptions {
  readonly store: ReservedStore;
  readonly log: Logger;
  readonly clock?: Clock;
}

/**
 * Tells the parts of a process when work has changed, over one connection that it opens with the first follower. It
 * says that there is something to read and no more, and it may miss a change: followers poll as well.
 */
export class WorkSignals {
  readonly #options: WorkSignalsOptions;
  readonly #ending = new AbortController();
  readonly #followers = new Map<() => void, WorkSide | null>();
  #listening: Promise<void> | null = null;

  constructor(options: WorkSignalsOptions) {
    this.#options = options;
  }

  /** Call whenever a side has changed, or either when it is null. Returns an unsubscribe function. */
  follow(side: WorkSide | null, wake: () => void): () => void {
    // One function may follow twice.
    const follower = () => wake();
    this.#followers.set(follower, side);
    this.#listening ??= this.#listen();
    return () => this.#followers.delete(follower);
  }

  /** Stop. No follower is called afterwards. */
  async close(): Promise<void> {
    this.#followers.clear();
    this.#ending.abort(new Error("signals are closed"));
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { store, log, clock = systemClock } = this.#options;
    const applicationName = `${store.applicationName} work`;
    const onWake = (payload: string | null) => {
      for (const [wake, side] of this.#followers) if (payload === null || side === null || side === payload) wake();
    };
    await listenUntil(WORK_CHANNEL, { url: store.url, applicationName, log, clock, onWake }, this.#ending.signal);
  }
}
