import { describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { Outbox } from "./outbox.ts";

async function readAll<T>(outbox: Outbox<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const item of outbox) read.push(item);
  return read;
}

describe("Outbox", () => {
  it("should pass frames on in order, whether pushed before or after the reader started", async () => {
    const outbox = new Outbox<number>(8);
    outbox.push(1);
    const reading = readAll(outbox);
    outbox.push(2);
    await Promise.resolve();
    outbox.push(3);
    outbox.close();
    expect(await reading).toEqual([1, 2, 3]);
  });

  it("should return waiting frames before it ends on close", async () => {
    const outbox = new Outbox<number>(8);
    outbox.push(1);
    outbox.close();
    expect(outbox.push(2)).toBe(false);
    expect(await readAll(outbox)).toEqual([1]);
  });

  it("should fail with PEER_TOO_SLOW one frame above its limit, and drop waiting frames", async () => {
    const outbox = new Outbox<number>(2);
    expect([outbox.push(1), outbox.push(2), outbox.push(3)]).toEqual([true, true, false]);
    expect(outbox.size).toBe(0);
    const error: unknown = await readAll(outbox).catch((thrown: unknown) => thrown);
    expect(reasonOf(error)).toBe("PEER_TOO_SLOW");
  });

  it("should count a frame as waiting until the reader takes it", async () => {
    const outbox = new Outbox<number>(2);
    const reader = outbox[Symbol.asyncIterator]();
    outbox.push(1);
    outbox.push(2);
    expect(await reader.next()).toEqual({ value: 1, done: false });
    expect(outbox.push(3)).toBe(true);
    expect(outbox.push(4)).toBe(false);
    await expect(reader.next()).rejects.toThrow("does not read");
  });

  it("should accept nothing more after its reader left", async () => {
    const outbox = new Outbox<number>(2);
    outbox.push(1);
    for await (const _ of outbox) break;
    expect(outbox.push(2)).toBe(false);
    expect(outbox.ended).toBe(true);
  });

  it("should keep its first end", async () => {
    const outbox = new Outbox<number>(2);
    outbox.fail(new Error("first"));
    outbox.fail(new Error("second"));
    outbox.close();
    await expect(readAll(outbox)).rejects.toThrow("first");
  });
});
