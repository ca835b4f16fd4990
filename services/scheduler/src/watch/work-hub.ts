import type { EventInterest } from "@rollcall/domain";
import { type Clock, type Task, WakeUp } from "@rollcall/process";
import { Limiter } from "@rollcall/rpc";
import {
  type ChangePosition,
  changePosition,
  currentRevision,
  type EventFeed,
  type ExecutionRow,
  type Following,
  readChangedExecutions,
  readLiveOnNodes,
  type Store,
  type WorkSignals,
} from "@rollcall/store";

/** A function that is called with executions that may have changed. */
export type WorkListener = (executions: readonly ExecutionRow[]) => void;

export interface WorkHubOptions {
  readonly store: Store;
  readonly signals: WorkSignals;
  readonly feed: EventFeed;
  readonly clock: Clock;
  /** Poll interval without a notification, in milliseconds; default 1000. */
  readonly pollMs?: number;
}

const POLL_MS = 1_000;
/** The maximum number of concurrent reads by all watches. The other connections of the pool are for calls. */
const WATCH_READS = 3;
/** Shortest time between two polls, to gather changes. */
const GATHER_MS = 50;
const EXECUTIONS_A_READ = 500;
/**
 * The events about nodes that a watch needs: changes to health, because executions on an unhealthy node are
 * shown as lost.
 */
const NODES_INTEREST: EventInterest = { types: new Set(["node.health.changed"]), displaced: new Set() };

/** Reads changed executions, once for all watchers in this process, and only while there are watchers. */
export class WorkHub {
  readonly task: Task;
  readonly #options: WorkHubOptions;
  readonly #reads = new Limiter(WATCH_READS);
  readonly #wakeUp = new WakeUp();
  readonly #listeners = new Set<WorkListener>();
  #position: ChangePosition | null = null;
  #following: Following | null = null;
  /** Nodes whose health has changed. */
  #nodes = new Set<string>();

  constructor(options: WorkHubOptions) {
    this.#options = options;
    this.task = { name: "work-hub", run: (signal, succeeded) => this.#run(signal, succeeded) };
  }

  /** The current number of watchers. */
  get watchers(): number {
    return this.#listeners.size;
  }

  /**
   * Subscribe to all changes from now on. If the caller reads the current state only after this resolves, it
   * misses no change. Returns an unsubscribe function.
   */
  async join(listener: WorkListener, signal: AbortSignal): Promise<() => void> {
    const { store, feed } = this.#options;
    await feed.start();
    const { after, position } = await this.read(signal, async () => ({
      after: await currentRevision(store.db),
      position: await changePosition(store.db),
    }));
    this.#position ??= position;
    this.#following ??= this.#follow(after);
    this.#listeners.add(listener);
    this.#wakeUp.call();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#position = null;
      this.#following?.leave();
      this.#following = null;
      this.#nodes.clear();
    };
  }

  /** Read for a watch once a slot is free. Rejects when the signal aborts first. */
  async read<T>(signal: AbortSignal, reading: () => Promise<T>): Promise<T> {
    const leave = await this.#reads.enter(signal);
    try {
      return await reading();
    } finally {
      leave();
    }
  }

  #follow(after: bigint): Following {
    const deliver = (events: readonly { readonly subject: string }[]) => {
      for (const { subject } of events) this.#nodes.add(subject);
      if (events.length > 0) this.#wakeUp.call();
    };
    const following = this.#options.feed.follow({ interest: NODES_INTEREST, after, deliver });
    following.caughtUp.catch(() => {});
    return following;
  }

  async #run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { signals, clock, pollMs = POLL_MS } = this.#options;
    const unfollow = signals.follow(null, () => this.#wakeUp.call());
    try {
      while (!signal.aborted) {
        if (this.#listeners.size > 0) await this.#look(signal);
        succeeded();
        await this.#wakeUp.rest(clock, { atMostMs: pollMs, atLeastMs: GATHER_MS }, signal).catch(() => {});
      }
    } finally {
      unfollow();
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { reserved } = this.#options.store;
    const from = this.#position;
    if (from === null) return;
    await this.#scanNodes(signal);
    let next: ChangePosition | null = null;
    let after = "";
    for (;;) {
      signal.throwIfAborted();
      const page = { position: from, after, limit: EXECUTIONS_A_READ };
      const { items, position } = await readChangedExecutions(reserved.db, page);
      next ??= position;
      this.#tell(items);
      const last = items.at(-1);
      if (last === undefined || items.length < EXECUTIONS_A_READ) break;
      after = last.execution.id;
    }
    if (this.#position === from) this.#position = next;
  }

  /** Notify listeners again about executions on nodes whose health has changed. */
  async #scanNodes(signal: AbortSignal): Promise<void> {
    if (this.#nodes.size === 0) return;
    const { reserved } = this.#options.store;
    const nodeIds = [...this.#nodes];
    this.#nodes = new Set();
    try {
      for (let after: string | null = ""; after !== null; ) {
        signal.throwIfAborted();
        const items = await readLiveOnNodes(reserved.db, { nodeIds, after, limit: EXECUTIONS_A_READ });
        this.#tell(items);
        after = items.length < EXECUTIONS_A_READ ? null : (items.at(-1)?.execution.id ?? null);
      }
    } catch (error) {
      for (const id of nodeIds) this.#nodes.add(id);
      throw error;
    }
  }

  #tell(executions: readonly ExecutionRow[]): void {
    if (executions.length > 0) for (const listener of this.#listeners) listener(executions);
  }
}
