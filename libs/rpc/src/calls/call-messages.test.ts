import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { CallMessages } from "./call-messages.ts";

async function* count(to: number) {
  for (let value = 1; value <= to; value += 1) yield value;
}

/**
 * A handler that obeys its signal: it yields once, waits for the signal, yields a goodbye, and fails.
 */
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

describe("CallMessages", () => {
  it("should pass everything on and leave no listener", async () => {
    const { signal } = new AbortController();
    expect(await readAll(CallMessages.of(count(3), signal).cutAfter(10))).toEqual([1, 2, 3]);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("should let a handler that obeys the signal determine the end", async () => {
    const controller = new AbortController();
    const messages = CallMessages.of(heeding(controller.signal), controller.signal).cutAfter(10_000);
    const reader = messages[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ value: "hello", done: false });
    const last = reader.next();
    controller.abort(new Error("ending"));
    expect(await last).toEqual({ value: "goodbye", done: false });
    await expect(reader.next()).rejects.toThrow("ending");
  });

  it("should end with the reason if a handler hangs, and stay ended", async () => {
    const controller = new AbortController();
    const parked: AsyncIterable<never> = {
      [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
    };
    const reader = CallMessages.of(parked, controller.signal).cutAfter(5);
    const waiting = reader.next();
    controller.abort(new Error("ending"));
    await expect(waiting).rejects.toThrow("ending");
    await expect(reader.next()).rejects.toThrow("ending");
  });

  it("should stop listening to the signal when its reader leaves", async () => {
    const { signal } = new AbortController();
    for await (const value of CallMessages.of(count(3), signal).cutAfter(10)) if (value === 2) break;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("should be one object for all interceptors, and map errors like the last of them", async () => {
    const { signal } = new AbortController();
    const ends: unknown[] = [];
    const failing: AsyncIterable<never> = {
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject("raw") }),
    };
    const messages = CallMessages.of(failing, signal).mapErrors((error) => `mapped ${error}`);
    expect(CallMessages.of(messages, signal)).toBe(messages);
    expect(CallMessages.of(messages, new AbortController().signal)).not.toBe(messages);
    messages.mapErrors((error) => `again ${error}`).whenEnded((error) => ends.push(error));
    await expect(messages.next()).rejects.toBe("again mapped raw");
    messages.whenEnded((error) => ends.push(error));
    expect(ends).toEqual(["again mapped raw", "again mapped raw"]);
  });

  it("should report the end once if the signal aborts before a message was requested", () => {
    const controller = new AbortController();
    const ends: unknown[] = [];
    const messages = CallMessages.of(count(3), controller.signal).whenEnded((error) => ends.push(error));
    controller.abort("left");
    void messages.return();
    expect(ends).toEqual(["left"]);
  });

  it("should report the end with the handler's own outcome", async () => {
    const controller = new AbortController();
    const ends: unknown[] = [];
    const messages = CallMessages.of(count(1), controller.signal).cutAfter(10_000);
    messages.whenEnded((error) => ends.push(error));
    controller.abort("ending");
    expect(ends).toEqual([]);
    expect(await readAll(messages)).toEqual([1]);
    expect(ends).toEqual([undefined]);
  });

  it("should report the end after the grace period even if the handler hangs", async () => {
    const controller = new AbortController();
    const stuck: AsyncIterable<number> = {
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.resolve({ done: false, value: 1 }),
        return: () => new Promise(() => {}),
      }),
    };
    const messages = CallMessages.of(stuck, controller.signal).cutAfter(5);
    const end = new Promise((resolve) => messages.whenEnded(resolve));
    await messages.next();
    void messages.return();
    controller.abort("left");
    expect(await end).toBe("left");
    expect(await messages.return()).toEqual({ done: true, value: undefined });
  });
});
