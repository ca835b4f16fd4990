import { describe, expect, it } from "@jest/globals";
import { LogWindow } from "./log-window.ts";

const items = (...revisions: readonly number[]) => revisions.map((revision) => ({ revision: BigInt(revision) }));
/** An item's size in bytes is its revision. */
const windowOf = (limit: number, floor: bigint, bytes = 1_000_000) => {
  const sizeOf = ({ revision }: { readonly revision: bigint }) => Number(revision);
  return new LogWindow<{ revision: bigint }>({ items: limit, bytes, sizeOf }, floor);
};
const revisionsOf = (piece: { items: readonly { revision: bigint }[] } | null) =>
  piece?.items.map(({ revision }) => Number(revision));

describe("LogWindow", () => {
  it("should return changes above a revision, and the last revision covered", () => {
    const window = windowOf(10, 5n);
    window.push(items(6, 8, 9), 11n);
    expect(window.readAfter(5n, 10)).toEqual({ items: items(6, 8, 9), through: 11n });
    expect(window.readAfter(7n, 1)).toEqual({ items: items(8), through: 8n });
    expect(window.readAfter(11n, 1)).toEqual({ items: [], through: 11n });
  });

  it("should send nothing to a reader that is ahead, and not move it back", () => {
    const window = windowOf(10, 5n);
    window.push(items(6), 6n);
    expect(window.readAfter(9n, 10)).toEqual({ items: [], through: 9n });
  });

  it("should give all readers of the same revision one piece, until more arrives", () => {
    const window = windowOf(10, 5n);
    window.push(items(6, 8), 8n);
    const piece = window.readAfter(6n, 10);
    expect(window.readAfter(8n, 10)?.items).toEqual([]);
    expect(window.readAfter(6n, 10)).toBe(piece);
    expect(window.readAfter(6n, 1)).not.toBe(piece);
    window.push(items(9), 9n);
    expect(revisionsOf(window.readAfter(6n, 10))).toEqual([8, 9]);
    window.reset(20n);
    expect(window.readAfter(6n, 10)).toBeNull();
  });

  it("should not serve a reader whose revision is before the window", () => {
    const window = windowOf(2, 0n);
    window.push(items(1, 2), 2n);
    window.push(items(3), 3n);
    expect(window.floor).toBe(1n);
    expect(window.readAfter(0n, 10)).toBeNull();
    expect(revisionsOf(window.readAfter(1n, 10))).toEqual([2, 3]);
  });

  it("should keep the newest push whole, even beyond the limit", () => {
    const window = windowOf(2, 0n);
    window.push(items(1), 1n);
    window.push(items(2, 3, 4, 5), 5n);
    expect(revisionsOf(window.readAfter(1n, 10))).toEqual([2, 3, 4, 5]);
    expect(window.readAfter(0n, 10)).toBeNull();
  });

  it("should stay within its bytes, except for the newest push", () => {
    const window = windowOf(10, 0n, 20);
    for (const revision of [5, 6, 7]) window.push(items(revision), BigInt(revision));
    expect(revisionsOf(window.readAfter(0n, 10))).toEqual([5, 6, 7]);
    window.push(items(8), 8n);
    expect(window.floor).toBe(6n);
    expect(revisionsOf(window.readAfter(6n, 10))).toEqual([7, 8]);
    window.push(items(9, 10, 11), 11n);
    expect(revisionsOf(window.readAfter(8n, 10))).toEqual([9, 10, 11]);
    window.push(items(12), 12n);
    expect(revisionsOf(window.readAfter(11n, 10))).toEqual([12]);
    window.reset(0n);
    for (const revision of [8, 9]) window.push(items(revision), BigInt(revision));
    expect(revisionsOf(window.readAfter(0n, 10))).toEqual([8, 9]);
  });

  it("should stay bounded and correct over many pushes", () => {
    const window = windowOf(7, 0n);
    for (let revision = 1; revision <= 1_000; revision += 1) {
      window.push(items(revision), BigInt(revision));
      expect(window.size).toBeLessThanOrEqual(7);
      const floor = Math.max(0, revision - 7);
      expect(window.floor).toBe(BigInt(floor));
      const rest = Array.from({ length: revision - floor }, (_, index) => floor + 1 + index);
      expect(revisionsOf(window.readAfter(window.floor, 100))).toEqual(rest);
    }
  });

  it("should start over after a reset", () => {
    const window = windowOf(7, 0n);
    window.push(items(1, 2, 3), 3n);
    window.reset(1n);
    window.push(items(2), 2n);
    expect(window.readAfter(0n, 10)).toBeNull();
    expect(revisionsOf(window.readAfter(1n, 10))).toEqual([2]);
  });
});
