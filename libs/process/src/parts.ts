import type { Running } from "./lifecycle.ts";

/** The parts that a start has opened so far. They are closed in reverse order. */
export class Parts {
  readonly #closes: (() => unknown)[] = [];

  /** Add a part, to be closed after the parts that are added later. Returns the part. */
  add<T extends { close(): unknown }>(part: T): T {
    this.onClose(() => part.close());
    return part;
  }

  /** Add a function to call on close, after the parts that are added later are closed. */
  onClose(close: () => unknown): void {
    this.#closes.push(close);
  }

  /**
   * Close each part once. If closing a part fails, the others are still closed, and the first error is thrown at
   * the end.
   */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closes.pop(); close !== undefined; close = this.#closes.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

/**
 * Start something that consists of parts. Closing the result closes all parts. When a part cannot start, the parts
 * before it are closed and the error is thrown.
 */
export async function startParts<T extends object>(start: (parts: Parts) => Promise<T>): Promise<T & Running> {
  const parts = new Parts();
  try {
    const started = await start(parts);
    return { ...started, close: () => parts.close() };
  } catch (error) {
    // Report only the first error.
    await parts.close().catch(() => {});
    throw error;
  }
}
