import { describe, expect, it } from "@jest/globals";
import { orAborted } from "./log-wake.ts";

describe("orAborted()", () => {
  it("should share one result with all waiting readers", async () => {
    expect(await orAborted(Promise.resolve(7), new AbortController().signal)).toBe(7);
    await expect(orAborted(Promise.reject(new Error("away")), new AbortController().signal)).rejects.toThrow("away");
  });

  it("should end with its signal, before or while it waits, and leave no rejection unhandled", async () => {
    let fail: (reason: unknown) => void = () => {};
    const shared = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const ending = new AbortController();
    const waiting = orAborted(shared, ending.signal);
    ending.abort(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
    await expect(orAborted(shared, ending.signal)).rejects.toThrow("left");
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    fail(new Error("away"));
    await new Promise(setImmediate);
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});
