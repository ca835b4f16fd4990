import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { shareRuns } from "./share-runs.ts";

/** Runs that end when they are told to. */
function heldRuns() {
  const ends: ((outcome: string) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const clock = new ManualClock();
  const shared = shareRuns(
    () =>
      new Promise<string>((resolve, reject) => {
        ends.push(resolve);
        failures.push(reject);
      }),
    clock,
  );
  return { clock, ends, failures, shared };
}

/** All that could go on has gone on. */
function settled(): Promise<void> {
  return new Promise(setImmediate);
}

describe("shareRuns()", () => {
  it("should run once for all who ask during a run, after that run", async () => {
    const { ends, shared } = heldRuns();
    const first = shared();
    const others = [shared(), shared(), shared()];
    expect(ends).toHaveLength(1);
    ends[0]?.("first");
    expect(await first).toBe("first");
    await settled();
    expect(ends).toHaveLength(2);
    ends[1]?.("second");
    expect(await Promise.all(others)).toEqual(["second", "second", "second"]);
    await settled();
    void shared();
    expect(ends).toHaveLength(3);
  });

  it("should rest after a run, for longer after a longer one", async () => {
    const { clock, ends, shared } = heldRuns();
    const first = shared();
    clock.advance(10);
    ends[0]?.("first");
    await first;
    await settled();
    const others = [shared(), shared()];
    clock.advance(39);
    await settled();
    expect(ends).toHaveLength(1);
    clock.advance(1);
    await settled();
    expect(ends).toHaveLength(2);
    ends[1]?.("second");
    expect(await Promise.all(others)).toEqual(["second", "second"]);
  });

  it("should rest for a bounded time", async () => {
    const { clock, ends, shared } = heldRuns();
    const first = shared();
    clock.advance(60_000);
    ends[0]?.("first");
    await first;
    void shared();
    await settled();
    clock.advance(200);
    await settled();
    expect(ends).toHaveLength(2);
  });

  it("should tell a failure to those who asked for that run, and go on", async () => {
    const { ends, failures, shared } = heldRuns();
    const first = shared();
    const second = shared();
    failures[0]?.(new Error("broken"));
    await expect(first).rejects.toThrow("broken");
    await settled();
    ends[1]?.("well");
    expect(await second).toBe("well");
  });
});
