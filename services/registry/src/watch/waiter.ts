/** Lets one watcher rest until it is woken. A wake-up while it works is not lost: its next rest ends at once. */
export class Waiter {
  #woken = false;
  #resume: (() => void) | null = null;

  /** End the present rest, or else the next one. */
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
