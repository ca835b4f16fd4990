import type { Logger } from "@rollcall/process";

/** A launch that can be queued. */
interface Launchable {
  readonly launch: () => Promise<void>;
}

/**
 * Launches a few executions at a time, in order of arrival. The queue keeps no reference to a removed execution.
 */
export class LaunchQueue {
  readonly #most: number;
  readonly #log: Logger;
  /** Queued launches in order of arrival. */
  readonly #waiting = new Set<Launchable>();
  #launching = 0;

  constructor(most: number, log: Logger) {
    this.#most = most;
    this.#log = log;
  }

  /** Queue a launch. Returns a function that removes the launch from the queue if it has not started. */
  add(one: Launchable): () => void {
    this.#waiting.add(one);
    this.#next();
    return () => this.#waiting.delete(one);
  }

  /** The number of queued launches. */
  get waiting(): number {
    return this.#waiting.size;
  }

  #next(): void {
    while (this.#launching < this.#most) {
      const [one] = this.#waiting;
      if (one === undefined) return;
      this.#waiting.delete(one);
      this.#launching += 1;
      void one
        .launch()
        .catch((err: unknown) => this.#log.error({ err }, "cannot launch execution"))
        .finally(() => {
          this.#launching -= 1;
          this.#next();
        });
    }
  }
}
