import type { Running } from "./lifecycle.ts";

/** What a start has opened so far. Parts are closed in the opposite order. */
export class Parts {
  readonly #closes: (() => unknown)[] = [];

  /** Have a part closed, after those that are added later. Returns it. */
  add<T extends { close(): unknown }>(part: T): T {
    this.onClose(() => part.close());
    return part;
  }

  /** Have this called at the end, after what is added later. */
  onClose(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Close all parts, each once. One that fails does not keep the others open; the first error is thrown at the end. */
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
 * Start something that has parts, and close all of them with it. When a part cannot start, those before it are closed
 * and its error is thrown.
 */
export async function startParts<T extends object>(start: (parts: Parts) => Promise<T>): Promise<T & Running> {
  const parts = new Parts();
  try {
    const started = await start(parts);
    return { ...started, close: () => parts.close() };
  } catch (error) {
    // The first error is the one to report.
    await parts.close().catch(() => {});
    throw error;
  }
}
