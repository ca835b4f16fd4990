import { describe, expect, it } from "@jest/globals";
import { reasonOf } from "@rollcall/errors";
import { settle } from "@rollcall/testkit/time";
import { UnpackingQueue } from "./unpacking-queue.ts";

/** Create work that does not end until the test ends it. */
function work() {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const unpack = (name: number) => () => {
    begun.push(name);
    return new Promise<number>((resolve) => ends.push(() => resolve(name)));
  };
  return { begun, ends, unpack };
}

describe("UnpackingQueue", () => {
  it("should decompress one at a time, in order, even after a failure", async () => {
    const queue = new UnpackingQueue();
    const { begun, ends, unpack } = work();
    const first = queue.add(unpack(1));
    const failing = queue.add(async () => {
      begun.push(2);
      throw new Error("no gzip");
    });
    const third = queue.add(unpack(3));
    await settle();
    expect(begun).toEqual([1]);
    ends[0]?.();
    expect(await first).toBe(1);
    await expect(failing).rejects.toThrow("no gzip");
    await settle();
    expect(begun).toEqual([1, 2, 3]);
    ends[1]?.();
    expect(await third).toBe(3);
    const later = queue.add(unpack(4));
    ends[2]?.();
    expect(await later).toBe(4);
  });

  it("should refuse with OVERLOADED when too many wait", async () => {
    const queue = new UnpackingQueue(1);
    const { ends, unpack } = work();
    const first = queue.add(unpack(1));
    const second = queue.add(unpack(2));
    const error = await queue.add(unpack(3)).catch((refused: unknown) => refused);
    expect(reasonOf(error)).toBe("OVERLOADED");
    ends[0]?.();
    await first;
    await settle();
    ends[1]?.();
    expect(await second).toBe(2);
  });
});
