import { describe, expect, it } from "@jest/globals";
import { seededRandom } from "../seeded-random.ts";
import { EXECUTION_ID_PATTERN, ExecutionIds, executionIdTimeMs } from "./execution-id.ts";

describe("ExecutionIds.next()", () => {
  it("should make ids of 26 characters that sort by time, within a millisecond and when the clock is set back", () => {
    const random = seededRandom(1);
    const ids = new ExecutionIds("");
    const times = [1_000, 1_000, 1_000, 1_001, 900, 1_700_000_000_000, 1_700_000_000_000];
    const made = times.map((atMs) => ids.next(atMs, random));
    for (const id of made) expect(id).toMatch(EXECUTION_ID_PATTERN);
    expect(new Set(made).size).toBe(made.length);
    expect(made.toSorted()).toEqual(made);
  });

  it("should continue after the greatest stored id", () => {
    const random = seededRandom(2);
    const last = new ExecutionIds("").next(5_000, random);
    const next = new ExecutionIds(last).next(4_000, random);
    expect(next > last).toBe(true);
  });

  it("should count over to the next millisecond", () => {
    const last = `${"0".repeat(9)}1${"z".repeat(16)}`;
    expect(new ExecutionIds(last).next(0, () => 0)).toBe(`${"0".repeat(9)}2${"0".repeat(16)}`);
  });
});

describe("executionIdTimeMs()", () => {
  it.each([0, 1, 1_700_000_000_123, 32 ** 10 - 1])("should read the time that an id was made at: %d ms", (atMs) => {
    expect(executionIdTimeMs(new ExecutionIds("").next(atMs, seededRandom(3)))).toBe(atMs);
  });

  it.each(["", "orphan01", "0".repeat(25), "u".repeat(26)])("should read none from %j", (id) => {
    expect(executionIdTimeMs(id)).toBeNull();
  });
});
