/**
 * The result of sending a window of pipelined messages, known once the server
 * has answered all of them.
 */
export interface WindowResult {
  /** Number of leading messages that were acknowledged without a gap. */
  readonly acknowledged: number;
  /** The error of the first message that failed; null when no message failed. */
  readonly failure: Error | null;
}

/**
 * Tracks the pending acknowledgements of messages in the order in which they
 * were sent. The number of pending acknowledgements is limited.
 */
export class AckWindow {
  readonly #limit: number;
  readonly #outcomes: (true | Error | null)[] = [];
  #acknowledged = 0;
  #inFlight = 0;
  #hasFailed = false;
  #wake: (() => void) | null = null;

  /** `limit` is the maximum number of unacknowledged messages. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a message failed. If so, no further messages should be sent. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Whether the limit is reached. */
  get isFull(): boolean {
    return this.#inFlight >= this.#limit;
  }

  /** Add the acknowledgement of the next message. */
  add(acknowledgement: Promise<void>): void {
    const index = this.#outcomes.length;
    this.#outcomes.push(null);
    this.#inFlight += 1;
    acknowledgement.then(
      () => this.#settle(index, true),
      (error: unknown) => this.#settle(index, toError(error)),
    );
  }

  /** Resolves when the server has answered one of the pending messages. */
  async answered(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Resolves when the server has answered all messages. */
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
