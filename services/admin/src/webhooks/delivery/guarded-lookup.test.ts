import type { LookupAddress } from "node:dns";
import { describe, expect, it } from "@jest/globals";
import { boundedResolve } from "./guarded-lookup.ts";

describe("boundedResolve()", () => {
  it("should look a name up once at a time, and two names at a time", async () => {
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

  it("should keep no place and no answer of a look-up that failed", async () => {
    let count = 0;
    const resolve = boundedResolve(async () => {
      count += 1;
      throw new Error("no such name");
    });
    for (const hostname of ["a", "b", "c", "a"]) await expect(resolve(hostname)).rejects.toThrow("no such name");
    expect(count).toBe(4);
  });
});

/** Whatever waits for nothing but its turn has had it. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
