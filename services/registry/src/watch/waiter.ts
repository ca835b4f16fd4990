/**
 * Lets one watcher wait until it is woken. If it is woken while it works, its next wait ends immediately.
 */
export class Waiter {
  #woken = false;
  #resume: (() => void) | null = null;

  /** End the current wait, or the next one. */
  readonly wake = (): void => {
    const resume = this.#resume;
    if (resume === null) {
      this.#woken = true;
      return;
    }
    this.#resume = null;
    resume();
  };

  async rest(): Promise<void> {
    if (this.#woken) {
      this.#woken = false;
      return;
    }
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
  }
}
