import { describe, expect, it } from "@jest/globals";
import { shareRuns } from "./share-runs.ts";

/** Runs that end when they are told to. */
function heldRuns() {
  const ends: ((outcome: string) => void)[] = [];
  const failures: ((error: Error) => void)[] = [];
  const shared = shareRuns(
    () =>
      new Promise<string>((resolve, reject) => {
        ends.push(resolve);
        failures.push(reject);
      }),
  );
  return { ends, failures, shared };
}

describe("shareRuns()", () => {
  it("should run once for all who ask during a run, after that run", async () => {
    const { ends, shared } = heldRuns();
    const first = shared();
    const others = [shared(), shared(), shared()];
    expect(ends).toHaveLength(1);
    ends[0]?.("first");
    expect(await first).toBe("first");
    await new Promise(setImmediate);
    expect(ends).toHaveLength(2);
    ends[1]?.("second");
    expect(await Promise.all(others)).toEqual(["second", "second", "second"]);
    void shared();
    expect(ends).toHaveLength(3);
  });

  it("should tell a failure to those who asked for that run, and go on", async () => {
    const { ends, failures, shared } = heldRuns();
    const first = shared();
    const second = shared();
    failures[0]?.(new Error("broken"));
    await expect(first).rejects.toThrow("broken");
    await new Promise(setImmediate);
    ends[1]?.("well");
    expect(await second).toBe("well");
  });
});
