import { type Clock, type Task, WakeUp } from "@rollcall/process";
import {
  type ChangePosition,
  changePosition,
  readChangedExecutions,
  type Store,
  type StoredExecution,
  type WorkSignals,
} from "@rollcall/store";

/** Told of executions that may have changed. */
export type WorkListener = (executions: readonly StoredExecution[]) => void;

/** What a hub needs. */
export interface WorkHubOptions {
  readonly store: Store;
  readonly signals: WorkSignals;
  readonly clock: Clock;
  /** How often to look without being woken; 1000. */
  readonly pollMs?: number;
}

const POLL_MS = 1_000;
/** Between two looks: what is committed meanwhile goes along. */
const GATHER_MS = 50;
const EXECUTIONS_A_READ = 500;

/** Reads which executions change, once for all watchers in this process, and only while there are any. */
export class WorkHub {
  readonly task: Task;
  readonly #options: WorkHubOptions;
  readonly #wakeUp = new WakeUp();
  readonly #listeners = new Set<WorkListener>();
  #position: ChangePosition | null = null;

  constructor(options: WorkHubOptions) {
    this.#options = options;
    this.task = { name: "work-hub", run: (signal, succeeded) => this.#run(signal, succeeded) };
  }

  /** Watchers at this moment. */
  get watchers(): number {
    return this.#listeners.size;
  }

  /**
   * Tell a listener of all that changes from now on: when it resolves, whatever is read afterwards is not newer than
   * what will be told. Returns an unsubscribe function.
   */
  async join(listener: WorkListener): Promise<() => void> {
    this.#position ??= await changePosition(this.#options.store.db);
    this.#listeners.add(listener);
    this.#wakeUp.call();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#position = null;
    };
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
    let next: ChangePosition | null = null;
    let after = "";
    for (;;) {
      signal.throwIfAborted();
      const page = { position: from, after, limit: EXECUTIONS_A_READ };
      const { items, position } = await readChangedExecutions(reserved.db, page);
      next ??= position;
      if (items.length > 0) for (const listener of this.#listeners) listener(items);
      const last = items.at(-1);
      if (last === undefined || items.length < EXECUTIONS_A_READ) break;
      after = last.execution.id;
    }
    if (this.#position === from) this.#position = next;
  }
}
