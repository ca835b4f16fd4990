import type { ContextValues } from "@connectrpc/connect";
import { callSlotKey, endingOf } from "./call-context.ts";

/**
 * The turn of a call to read a large message. Until the turn begins, the reader reads nothing more, so that the rest of
 * the message stays with its sender.
 */
export class LargeTurn {
  readonly #values: ContextValues;
  #release: (() => void) | null = null;
  #hasEnded = false;

  constructor(values: ContextValues) {
    this.#values = values;
  }

  /** Wait for the turn. Rejects as CallSlot.largeTurn() does. Calls that are not counted do not wait. */
  async begin(): Promise<void> {
    const slot = this.#values.get(callSlotKey);
    if (slot === null) return;
    const release = await slot.largeTurn(endingOf(this.#values).signal);
    if (this.#hasEnded) release();
    else this.#release = release;
  }

  /** End the turn once the message has been decoded, or will not be. Further calls have no effect. */
  end(): void {
    this.#hasEnded = true;
    this.#release?.();
    this.#release = null;
  }
}
