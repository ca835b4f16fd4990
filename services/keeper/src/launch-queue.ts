import type { Logger } from "@rollcall/process";

/** What is launched in its turn. */
interface Launchable {
  readonly launch: () => Promise<void>;
}

/** Launches a few executions at a time, in the order in which they came. It holds no more than the keeper keeps. */
export class LaunchQueue {
  readonly #most: number;
  readonly #log: Logger;
  readonly #waiting: Launchable[] = [];
  #launching = 0;

  constructor(most: number, log: Logger) {
    this.#most = most;
    this.#log = log;
  }

  add(one: Launchable): void {
    this.#waiting.push(one);
    this.#next();
  }

  #next(): void {
    while (this.#launching < this.#most) {
      const one = this.#waiting.shift();
      if (one === undefined) return;
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
