import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { WaitingRoom } from "./waiting-room.ts";

describe("WaitingRoom", () => {
  let owedMs: Record<string, number>;
  let room: WaitingRoom<{ readonly address: string; readonly name: string }>;
  let inside: string[];
  let taken: boolean;

  beforeEach(() => {
    jest.useFakeTimers();
    owedMs = {};
    inside = [];
    room = new WaitingRoom({
      msUntilFree: (address) => owedMs[address] ?? 0,
      nowMs: () => performance.now(),
    });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  function come(address: string, name: string) {
    const newcomer = { address, name };
    taken = room.enter(newcomer, () => inside.push(name));
    return newcomer;
  }

  it("should admit a newcomer immediately if its address is within budget", () => {
    owedMs.there = 1_000;
    come("here", "a");
    expect(inside).toEqual(["a"]);
  });

  it("should admit newcomers of one address in order, one per iteration", () => {
    for (const name of ["a", "b", "c"]) come("here", name);
    come("there", "d");
    expect(inside).toEqual(["a", "d"]);
    // Run the timers, because each newcomer's bytes must be read before the next newcomer is
    // admitted.
    jest.runAllTimers();
    expect(inside).toEqual(["a", "d", "b", "c"]);
  });

  it("should admit none while their address is over budget", () => {
    owedMs.here = 1_000;
    for (const name of ["a", "b"]) come("here", name);
    jest.advanceTimersByTime(999);
    expect(inside).toEqual([]);
    owedMs.here = 0;
    jest.advanceTimersByTime(1);
    expect(inside).toEqual(["a"]);
    owedMs.here = 500;
    jest.advanceTimersByTime(499);
    // Let a newcomer arrive later. It joins the end of the queue.
    owedMs.here = 0;
    come("here", "c");
    expect(inside).toEqual(["a"]);
    jest.runAllTimers();
    expect(inside).toEqual(["a", "b", "c"]);
  });

  it("should admit a newcomer after five seconds even if its address is still over budget", () => {
    owedMs.here = 60_000;
    for (const name of ["a", "b"]) come("here", name);
    jest.advanceTimersByTime(3_000);
    come("here", "c");
    jest.advanceTimersByTime(1_999);
    expect(inside).toEqual([]);
    jest.advanceTimersByTime(1);
    jest.advanceTimersByTime(10);
    expect(inside).toEqual(["a", "b"]);
    jest.advanceTimersByTime(3_000);
    expect(inside).toEqual(["a", "b", "c"]);
  });

  it("should admit none after it is closed, and return the ones still waiting", () => {
    owedMs.here = 1_000;
    const waiting = [come("here", "a"), come("here", "b")];
    expect(room.close()).toEqual(waiting);
    owedMs.here = 0;
    come("here", "c");
    come("there", "d");
    jest.runAllTimers();
    expect(inside).toEqual([]);
  });

  it("should accept at most 400 of an address that is over budget", () => {
    owedMs.here = 60_000;
    for (let index = 0; index < 400; index += 1) come("here", String(index));
    expect(taken).toBe(true);
    come("here", "one too many");
    expect(taken).toBe(false);
    come("there", "of another address");
    expect(taken).toBe(true);
    jest.advanceTimersByTime(5_000 + 400 * 10);
    expect([inside.length, inside.includes("one too many")]).toEqual([401, false]);
  });

  it("should accept any number of an address that is within budget", () => {
    for (let index = 0; index < 500; index += 1) come("here", String(index));
    expect(taken).toBe(true);
    jest.runAllTimers();
    expect(inside).toHaveLength(500);
  });

  it("should skip newcomers that have left, and drop empty queues", () => {
    owedMs.here = 100;
    room.leave(come("here", "a"));
    owedMs.here = 0;
    jest.runAllTimers();
    expect(inside).toEqual([]);
    come("here", "b");
    expect(inside).toEqual(["b"]);
    jest.runAllTimers();
    expect(jest.getTimerCount()).toBe(0);
  });
});
