import { describe, expect, it } from "@jest/globals";
import { describeError } from "@rollcall/errors";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { Batcher, type BatcherOptions } from "./batcher.ts";

interface Run {
  readonly items: readonly number[];
  readonly finish: () => void;
  readonly fail: (error: Error) => void;
}

function fixture(options: Partial<BatcherOptions<number, string>> = {}) {
  const clock = new ManualClock();
  const runs: Run[] = [];
  const batcher = new Batcher<number, string>({
    maxItems: 3,
    maxWaitMs: 10,
    maxQueued: 5,
    clock,
    run: (items) =>
      new Promise((resolve, reject) => {
        runs.push({
          items,
          finish: () => resolve(items.map((item) => `answer ${item}`)),
          fail: reject,
        });
      }),
    ...options,
  });
  return { clock, runs, batcher };
}

describe("Batcher", () => {
  it("should run when the oldest item has waited long enough, not before", async () => {
    const { clock, runs, batcher } = fixture();
    const answers = [batcher.submit(1), batcher.submit(2)];
    await clock.pass(9);
    expect(runs).toHaveLength(0);
    await clock.pass(1);
    expect(runs.map((run) => run.items)).toEqual([[1, 2]]);
    runs[0]?.finish();
    expect(await Promise.all(answers)).toEqual(["answer 1", "answer 2"]);
    expect(clock.sleepers).toBe(0);
  });

  it("should space runs, but start the first and one after a pause immediately", async () => {
    const { clock, runs, batcher } = fixture({ maxWaitMs: 0, spacingMs: 100 });
    const answers = [batcher.submit(1)];
    await clock.pass(0);
    expect(runs.map((run) => run.items)).toEqual([[1]]);
    answers.push(batcher.submit(2));
    runs[0]?.finish();
    await clock.pass(99);
    expect(runs).toHaveLength(1);
    answers.push(batcher.submit(3));
    await clock.pass(1);
    runs[1]?.finish();
    await clock.pass(100);
    answers.push(batcher.submit(4));
    await clock.pass(0);
    runs[2]?.finish();
    await Promise.all(answers);
    expect(runs.map((run) => run.items)).toEqual([[1], [2, 3], [4]]);
  });

  it("should space runs by the size of the last run, up to the longest spacing", async () => {
    const { clock, runs, batcher } = fixture({
      ...{ maxWaitMs: 0, maxItems: 9, maxQueued: 9 },
      ...{ spacingMs: 100, longestSpacingMs: 250 },
    });
    const began: number[] = [];
    const answers: Promise<string>[] = [];
    const comeAndRun = async (items: readonly number[]) => {
      answers.push(...items.map((item) => batcher.submit(item)));
      const waits = runs.length;
      const fromMs = clock.nowMs();
      await clock.pass(0);
      while (runs.length === waits) await clock.pass(10);
      began.push(clock.nowMs() - fromMs);
      runs.at(-1)?.finish();
      await settle();
    };
    await comeAndRun([1]);
    await comeAndRun([2, 3]);
    await comeAndRun([4, 5, 6]);
    await comeAndRun([7]);
    await comeAndRun([8]);
    await Promise.all(answers);
    // The first item does not wait. A run of one item does not increase the next wait.
    expect(began).toEqual([0, 100, 200, 250, 100]);
    expect(runs.map((run) => run.items)).toEqual([[1], [2, 3], [4, 5, 6], [7], [8]]);
  });

  it("should not space runs that are full, nor the last ones", async () => {
    const { clock, runs, batcher } = fixture({ maxWaitMs: 0, spacingMs: 100 });
    const answers = [1, 2, 3, 4, 5].map((item) => batcher.submit(item));
    expect(runs.map((run) => run.items)).toEqual([[1, 2, 3]]);
    answers.push(batcher.submit(6));
    runs[0]?.finish();
    await clock.pass(0);
    expect(runs.map((run) => run.items)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    answers.push(batcher.submit(7));
    runs[1]?.finish();
    await clock.pass(0);
    expect(runs).toHaveLength(2);
    const closed = batcher.close();
    runs[2]?.finish();
    await closed;
    await Promise.all(answers);
  });

  it("should not space runs of enough items, and include all waiting items", async () => {
    const { clock, runs, batcher } = fixture({ maxWaitMs: 0, spacingMs: 100, enoughItems: 2 });
    const answers = [batcher.submit(1)];
    await clock.pass(0);
    answers.push(batcher.submit(2), batcher.submit(3), batcher.submit(4));
    runs[0]?.finish();
    await settle();
    expect(runs.map((run) => run.items)).toEqual([[1], [2, 3, 4]]);
    answers.push(batcher.submit(5));
    runs[1]?.finish();
    await clock.pass(99);
    expect(runs).toHaveLength(2);
    answers.push(batcher.submit(6));
    expect(runs[2]?.items).toEqual([5, 6]);
    runs[2]?.finish();
    await Promise.all(answers);
    expect(clock.sleepers).toBe(0);
  });

  it("should run immediately when a batch is full", async () => {
    const { clock, runs, batcher } = fixture();
    const answers = [1, 2, 3].map((item) => batcher.submit(item));
    expect(runs.map((run) => run.items)).toEqual([[1, 2, 3]]);
    runs[0]?.finish();
    expect(await Promise.all(answers)).toEqual(["answer 1", "answer 2", "answer 3"]);
    await settle();
    expect(clock.sleepers).toBe(0);
  });

  it("should collect items during a run and run them right after, one run at a time", async () => {
    const { runs, batcher } = fixture();
    const answers = [1, 2, 3, 4, 5, 6, 7].map((item) => batcher.submit(item));
    expect(runs).toHaveLength(1);
    runs[0]?.finish();
    await settle();
    expect(runs.map((run) => run.items)).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    runs[1]?.finish();
    await settle();
    expect(runs[2]?.items).toEqual([7]);
    runs[2]?.finish();
    expect(await Promise.all(answers)).toHaveLength(7);
  });

  it("should run several batches concurrently when allowed", async () => {
    const { runs, batcher } = fixture({ maxRunning: 2, maxItems: 1 });
    const answers = [1, 2, 3].map((item) => batcher.submit(item));
    expect(runs.map((run) => run.items)).toEqual([[1], [2]]);
    runs[1]?.finish();
    await settle();
    expect(runs[2]?.items).toEqual([3]);
    runs[0]?.finish();
    runs[2]?.finish();
    expect(await Promise.all(answers)).toHaveLength(3);
  });

  it("should refuse an item above its queue limit as OVERLOADED, with a retry delay", async () => {
    const { runs, batcher } = fixture({ retryAfterMs: 1_500 });
    const answers = [1, 2, 3, 4, 5, 6, 7, 8].map((item) => batcher.submit(item));
    const error: unknown = await batcher.submit(9).catch((thrown: unknown) => thrown);
    expect(describeError(error)).toMatchObject({
      reason: "OVERLOADED",
      metadata: { limit: "5" },
      retryAfterMs: 1_500,
    });
    for (let index = 0; index < 3; index += 1) {
      runs[index]?.finish();
      await settle();
    }
    expect(await Promise.all(answers)).toHaveLength(8);
  });

  it("should fail only the items of a failed run", async () => {
    const { runs, batcher } = fixture({ maxItems: 1 });
    const first = batcher.submit(1);
    const second = batcher.submit(2);
    const outcome = expect(first).rejects.toThrow("no store");
    runs[0]?.fail(new Error("no store"));
    await outcome;
    await settle();
    runs[1]?.finish();
    expect(await second).toBe("answer 2");
  });

  it("should fail a run that returns too few results or throws synchronously", async () => {
    const short = new Batcher<number, string>({
      maxItems: 1,
      maxWaitMs: 0,
      maxQueued: 5,
      run: async () => [],
    });
    await expect(short.submit(1)).rejects.toThrow("1 items got 0 answers");
    const broken = new Batcher<number, string>({
      maxItems: 1,
      maxWaitMs: 0,
      maxQueued: 5,
      run: () => {
        throw new Error("broken");
      },
    });
    await expect(broken.submit(1)).rejects.toThrow("broken");
  });

  it("should finish waiting items on close and accept no more", async () => {
    const { runs, batcher } = fixture();
    const waiting = batcher.submit(1);
    let isClosed = false;
    const closed = batcher.close().then(() => {
      isClosed = true;
    });
    await expect(batcher.submit(2)).rejects.toThrow("the server is shutting down");
    await settle();
    expect({ runs: runs.length, isClosed }).toEqual({ runs: 1, isClosed: false });
    runs[0]?.finish();
    expect(await waiting).toBe("answer 1");
    await closed;
    await batcher.close();
  });
});
