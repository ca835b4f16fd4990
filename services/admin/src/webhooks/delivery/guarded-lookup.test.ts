import type { LookupAddress } from "node:dns";
import { describe, expect, it } from "@jest/globals";
import { boundedResolve } from "./guarded-lookup.ts";

describe("boundedResolve()", () => {
  it("should run one lookup per name and two lookups in total at a time", async () => {
    const asked: string[] = [];
    const answers = new Map<string, (addresses: readonly LookupAddress[]) => void>();
    const resolve = boundedResolve((hostname) => {
      asked.push(hostname);
      return new Promise((answer) => answers.set(hostname, answer));
    });
    const all = ["a", "b", "a", "c", "c"].map((hostname) => resolve(hostname));
    await settled();
    expect(asked).toEqual(["a", "b"]);
    answers.get("a")?.([{ address: "8.8.8.8", family: 4 }]);
    expect(await all[0]).toEqual(await all[2]);
    await settled();
    expect(asked).toEqual(["a", "b", "c"]);
    answers.get("b")?.([]);
    answers.get("c")?.([]);
    await Promise.all(all);
    void resolve("a");
    await settled();
    expect(asked).toEqual(["a", "b", "c", "a"]);
  });

  it("should release the slot of a failed lookup, and not cache it", async () => {
    let count = 0;
    const resolve = boundedResolve(async () => {
      count += 1;
      throw new Error("no such name");
    });
    for (const hostname of ["a", "b", "c", "a"]) await expect(resolve(hostname)).rejects.toThrow("no such name");
    expect(count).toBe(4);
  });
});

/** Let all pending microtasks and timers run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
