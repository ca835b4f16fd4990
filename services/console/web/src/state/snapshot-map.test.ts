import { describe, expect, it } from "@jest/globals";
import { SnapshotMap } from "./snapshot-map.ts";

describe("SnapshotMap", () => {
  it("should drop what a new snapshot does not contain, once it is complete", () => {
    const map = new SnapshotMap<number>();
    map.apply([["a", 1]], false);
    expect([...map.apply([["b", 1]], true).keys()]).toEqual(["a", "b"]);
    expect([...map.apply([["c", 1]], false).keys()]).toEqual(["a", "b", "c"]);
    map.restart();
    expect([...map.apply([["b", 2]], false)]).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 1],
    ]);
    expect([...map.apply([], true)]).toEqual([["b", 2]]);
    expect([...map.apply([["d", 3]], false).keys()]).toEqual(["b", "d"]);
  });

  it("should be unchanged when nothing arrived", () => {
    const map = new SnapshotMap<number>();
    const shown = map.apply([["a", 1]], true);
    expect(map.apply([], false)).toBe(shown);
    expect(map.apply([], true)).toBe(shown);
  });

  it("should keep at most N, the last ones to arrive", () => {
    const map = new SnapshotMap<number>(2);
    const three = [1, 2, 3].map((at) => [String(at), at] as const);
    expect([...map.apply(three, false).keys()]).toEqual(["2", "3"]);
    expect([...map.apply([], true).keys()]).toEqual(["2", "3"]);
    expect([...map.apply([["4", 4]], false).keys()]).toEqual(["3", "4"]);
    map.restart();
    expect([...map.apply(three, true).keys()]).toEqual(["2", "3"]);
  });
});
