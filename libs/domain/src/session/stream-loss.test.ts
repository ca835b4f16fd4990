import { describe, expect, it } from "@jest/globals";
import { StreamLoss } from "./stream-loss.ts";

const limits = { part: 0.5, withinMs: 1_000, leastStreams: 20, restMs: 600_000 };

/**
 * Break some of the streams, one every `everyMs`. Returns how many had broken when a doubt began; null if none began.
 */
function breakStreams(loss: StreamLoss, streams: number, broken: number, everyMs: number, fromMs = 0): number | null {
  for (let index = 0; index < broken; index++) {
    const atMs = fromMs + index * everyMs;
    if (loss.onBroken(atMs, streams - index - 1)) return index + 1;
  }
  return null;
}

describe("StreamLoss", () => {
  it.each([
    ["half of them", 100, 50, 0, null],
    ["one more than half", 100, 51, 0, 51],
    ["all, but slowly", 100, 100, 100, null],
    ["all of a few", 19, 19, 0, null],
    ["all of enough", 20, 20, 0, 11],
  ])("should doubt when streams break together: %s", (_, streams, broken, everyMs, at) => {
    expect(breakStreams(new StreamLoss(limits), streams, broken, everyMs)).toBe(at);
  });

  it.each([
    [100, 50, false],
    [100, 51, true],
    [19, 19, false],
  ])("should doubt when of %d streams %d are silent: %s", (streams, silent, doubts) => {
    expect(new StreamLoss(limits).onSilent(0, silent, streams)).toBe(doubts);
  });

  it("should doubt once, and again only after a rest", () => {
    const loss = new StreamLoss(limits);
    expect(loss.onSilent(0, 100, 100)).toBe(true);
    expect(loss.mayDoubt(599_999)).toBe(false);
    expect(loss.onSilent(599_999, 100, 100)).toBe(false);
    expect(breakStreams(loss, 100, 100, 0, 300_000)).toBeNull();
    expect(loss.onSilent(600_000, 100, 100)).toBe(true);
  });
});

describe("StreamLoss.onBroken()", () => {
  it("should start counting again after the time has passed", () => {
    const loss = new StreamLoss(limits);
    expect(breakStreams(loss, 20, 10, 0)).toBeNull();
    expect(loss.onBroken(1_000, 9)).toBe(false);
    const other = new StreamLoss(limits);
    expect(breakStreams(other, 20, 10, 0)).toBeNull();
    expect(other.onBroken(999, 9)).toBe(true);
  });
});
