import { describe, expect, it } from "@jest/globals";
import { PageRoom, splitBySize } from "./page-room.ts";

const itself = (size: number) => size;

/** Count how many items fit, starting with the first. */
function fitting(sizes: readonly number[], limits: { items: number; bytes: number }): number {
  const room = new PageRoom(limits);
  const firstLeft = sizes.findIndex((size) => !room.take(size));
  return firstLeft < 0 ? sizes.length : firstLeft;
}

describe("PageRoom", () => {
  it.each([
    // sizes, items, bytes, how many fit
    [[], 3, 10, 0],
    [[4, 4], 3, 10, 2],
    [[4, 6], 3, 10, 2],
    [[4, 6, 0], 3, 10, 3],
    [[4, 7], 3, 10, 1],
    [[11], 3, 10, 1],
    [[11, 1], 3, 10, 1],
    [[1, 1, 1, 1], 3, 10, 3],
    [[1], 0, 10, 0],
  ])("should of %j with limits of %d and %d take %d", (sizes, items, bytes, count) => {
    expect(fitting(sizes, { items, bytes })).toBe(count);
  });
});

describe("splitBySize()", () => {
  it("should make no part of no items, and one of what fits", () => {
    expect([...splitBySize([], itself, { items: 3, bytes: 10 })]).toEqual([]);
    expect([...splitBySize([5, 5], itself, { items: 3, bytes: 10 })]).toEqual([[5, 5]]);
  });

  it("should lose nothing, keep the order, and exceed the bytes only for a single item", () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    for (let round = 0; round < 500; round++) {
      const sizes = Array.from({ length: random(40) }, () => random(30));
      const limits = { items: 1 + random(8), bytes: 1 + random(40) };
      const parts = [...splitBySize(sizes, itself, limits)];
      expect(parts.flat()).toEqual(sizes);
      for (const part of parts) {
        const bytes = part.reduce((sum, size) => sum + size, 0);
        expect(part.length).toBeGreaterThan(0);
        expect(part.length).toBeLessThanOrEqual(limits.items);
        if (part.length > 1) expect(bytes).toBeLessThanOrEqual(limits.bytes);
      }
      // Each part is as large as possible: the first item of the next part did not fit.
      for (const [index, part] of parts.slice(0, -1).entries()) {
        const next = parts[index + 1]?.[0] ?? 0;
        const bytes = part.reduce((sum, size) => sum + size, next);
        expect(part.length === limits.items || bytes > limits.bytes).toBe(true);
      }
    }
  });
});
