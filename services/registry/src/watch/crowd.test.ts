import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { type Clock, systemClock } from "@rollcall/process";
import { Crowd } from "./crowd.ts";

/** A crowd whose pauses last until the test ends them. */
function crowdOf(members: number) {
  const ending = new AbortController();
  const pauses: { readonly ms: number; readonly end: () => void }[] = [];
  const sleep: Clock["sleep"] = (ms) => new Promise((resolve) => pauses.push({ ms, end: resolve }));
  const crowd = new Crowd({ ...systemClock, nowMs: () => performance.now(), sleep }, ending.signal);
  const woken = new Array<number>(members).fill(0);
  const wakerOf = (member: number) => () => {
    woken[member] = (woken[member] ?? 0) + 1;
  };
  const leaves = woken.map((_, member) => crowd.join({ wake: wakerOf(member) }));
  const rounds = () => [Math.min(...woken), Math.max(...woken)];
  const until = async (what: () => boolean) => {
    while (!what()) await turn();
  };
  return { crowd, ending, pauses, woken, leaves, rounds, until };
}

describe("Crowd", () => {
  it("should wake a few as soon as the current task ends, without a pause", async () => {
    const { crowd, pauses, rounds } = crowdOf(100);
    crowd.wake();
    expect(rounds()).toEqual([0, 0]);
    await Promise.resolve();
    expect(rounds()).toEqual([1, 1]);
    crowd.wake();
    await Promise.resolve();
    expect(rounds()).toEqual([2, 2]);
    expect(pauses).toEqual([]);
  });

  it("should wake many in batches, with other work in between", async () => {
    const { crowd, woken, pauses, until } = crowdOf(1_000);
    const parts: number[] = [];
    crowd.wake();
    await until(() => {
      parts.push(woken.filter((times) => times > 0).length);
      return pauses.length > 0;
    });
    expect(new Set(parts).size).toBeGreaterThan(5);
    expect(woken).toEqual(new Array(1_000).fill(1));
  });

  it("should pause after a large round, and include what arrived during it", async () => {
    const { crowd, pauses, rounds, until } = crowdOf(300);
    crowd.wake();
    await until(() => pauses.length === 1);
    for (let time = 0; time < 5; time += 1) crowd.wake();
    await turn();
    expect(rounds()).toEqual([1, 1]);
    pauses[0]?.end();
    await until(() => pauses.length === 2);
    expect(rounds()).toEqual([2, 2]);
    pauses[1]?.end();
    await turn();
    expect(pauses).toHaveLength(2);
    for (const { ms } of pauses) expect(ms).toBeLessThanOrEqual(20);
  });

  it("should not wake waiters that left, and end later ones immediately", async () => {
    const { crowd, ending, woken, leaves, rounds } = crowdOf(2);
    leaves[0]?.();
    crowd.wake();
    await turn();
    expect(woken).toEqual([0, 1]);
    ending.abort();
    crowd.wake();
    await turn();
    expect(woken).toEqual([0, 1]);
    crowd.wakeAtOnce();
    expect(rounds()).toEqual([0, 2]);
  });
});
