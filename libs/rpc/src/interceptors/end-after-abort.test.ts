import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { endAfterAbort } from "./end-after-abort.ts";

async function* count(to: number) {
  for (let value = 1; value <= to; value += 1) yield value;
}

/** Yields once, waits for the signal, says goodbye, and fails. */
async function* heeding(signal: AbortSignal) {
  yield "hello";
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  yield "goodbye";
  signal.throwIfAborted();
}

async function readAll<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const message of messages) read.push(message);
  return read;
}

describe("endAfterAbort()", () => {
  it("should pass everything on and leave no listener", async () => {
    const { signal } = new AbortController();
    expect(await readAll(endAfterAbort(count(3), signal, 10))).toEqual([1, 2, 3]);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("should let a handler that heeds the signal have its last word", async () => {
    const controller = new AbortController();
    const messages = endAfterAbort(heeding(controller.signal), controller.signal, 10_000);
    const reader = messages[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ value: "hello", done: false });
    const last = reader.next();
    controller.abort(new Error("ending"));
    expect(await last).toEqual({ value: "goodbye", done: false });
    await expect(reader.next()).rejects.toThrow("ending");
  });

  it("should end with the reason when a handler is parked, and stay ended", async () => {
    const controller = new AbortController();
    const parked: AsyncIterable<never> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    };
    const reader = endAfterAbort(parked, controller.signal, 5)[Symbol.asyncIterator]();
    const waiting = reader.next();
    controller.abort(new Error("ending"));
    await expect(waiting).rejects.toThrow("ending");
    await expect(reader.next()).rejects.toThrow("ending");
  });

  it("should let go of the signal when its reader leaves", async () => {
    const { signal } = new AbortController();
    for await (const value of endAfterAbort(count(3), signal, 10)) if (value === 2) break;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});
