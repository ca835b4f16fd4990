/** Where a run of pipelined messages stands once all of them have been answered. */
export interface WindowResult {
  /** How many messages from the first on have been acknowledged without a gap. */
  readonly acknowledged: number;
  /** Why the next one was not; null when there is none that failed. */
  readonly failure: Error | null;
}

/** Acknowledgements that are waited for: a bounded number at a time, in the order of sending. */
export class AckWindow {
  readonly #limit: number;
  readonly #outcomes: (true | Error | null)[] = [];
  #acknowledged = 0;
  #inFlight = 0;
  #hasFailed = false;
  #wake: (() => void) | null = null;

  /** `limit`: how many messages may wait for their acknowledgement. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a message was refused: nothing more should be sent. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Whether a further message would be one too many. */
  get isFull(): boolean {
    return this.#inFlight >= this.#limit;
  }

  /** Wait for the acknowledgement of the next message. */
  add(acknowledgement: Promise<void>): void {
    const index = this.#outcomes.length;
    this.#outcomes.push(null);
    this.#inFlight += 1;
    acknowledgement.then(
      () => this.#settle(index, true),
      (error: unknown) => this.#settle(index, toError(error)),
    );
  }

  /** Resolves when one of the messages in flight has been answered. */
  async answered(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Resolves when all messages have been answered. */
  async settled(): Promise<WindowResult> {
    while (this.#inFlight > 0) await this.answered();
    const outcome = this.#outcomes[this.#acknowledged];
    return {
      acknowledged: this.#acknowledged,
      failure: outcome instanceof Error ? outcome : null,
    };
  }

  #settle(index: number, outcome: true | Error): void {
    this.#outcomes[index] = outcome;
    this.#inFlight -= 1;
    if (outcome !== true) this.#hasFailed = true;
    while (this.#outcomes[this.#acknowledged] === true) this.#acknowledged += 1;
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
