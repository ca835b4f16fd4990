import type { Logger } from "@rollcall/process";

/** What is launched in its turn. */
interface Launchable {
  readonly launch: () => Promise<void>;
}

/** Launches a few executions at a time, in the order in which they came. It holds no more than the keeper keeps. */
export class LaunchQueue {
  readonly #most: number;
  readonly #log: Logger;
  /** In the order in which they came. */
  readonly #waiting = new Set<Launchable>();
  #launching = 0;

  constructor(most: number, log: Logger) {
    this.#most = most;
    this.#log = log;
  }

  /** Have one launched in its turn. Returns the function that takes it out, where its turn has not come. */
  add(one: Launchable): () => void {
    this.#waiting.add(one);
    this.#next();
    return () => this.#waiting.delete(one);
  }

  /** How many wait for their turn. */
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
        .catch((err: unknown) => this.#log.error({ err }, "execution cannot be launched"))
        .finally(() => {
          this.#launching -= 1;
          this.#next();
        });
    }
  }
}
