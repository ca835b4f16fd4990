import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { silentLogger } from "./logging.ts";
import { superviseTasks } from "./tasks.ts";

const RETRY = { baseMs: 100, maxMs: 1_600 };

/** Run a task that fails at once, a hundred times, and return its pauses. */
async function pausesOf(succeedsAt: (attempt: number) => boolean): Promise<readonly number[]> {
  const clock = new ManualClock();
  const ending = new AbortController();
  const startedAtMs: number[] = [];
  const task = {
    name: "failing",
    run: async (_signal: AbortSignal, succeeded: () => void) => {
      startedAtMs.push(clock.nowMs());
      if (succeedsAt(startedAtMs.length - 1)) succeeded();
      throw new Error("it fails");
    },
  };
  const options = { log: silentLogger, clock, signal: ending.signal, retry: RETRY, random: () => 0 };
  const { done } = superviseTasks([task], options);
  while (startedAtMs.length <= 100) await clock.pass(RETRY.maxMs);
  ending.abort(new Error("ended"));
  await done;
  return startedAtMs.slice(1, 101).map((atMs, index) => atMs - (startedAtMs[index] ?? 0));
}

describe("the pauses of a task, over a hundred failures", () => {
  it("should stay the first one when each attempt succeeds before it fails", async () => {
    expect(new Set(await pausesOf(() => true))).toEqual(new Set([50]));
  });

  it("should grow to the longest one and stay there when no attempt succeeds", async () => {
    const pauses = await pausesOf(() => false);
    expect(pauses.slice(0, 6)).toEqual([50, 100, 200, 400, 800, 800]);
    expect(Math.max(...pauses)).toBe(800);
  });

  it("should begin again after each success", async () => {
    const pauses = await pausesOf((attempt) => attempt % 4 === 0);
    expect(pauses).toEqual(Array.from({ length: 100 }, (_, index) => 50 * 2 ** (index % 4)));
  });
});
