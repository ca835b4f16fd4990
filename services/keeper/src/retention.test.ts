import { describe, expect, it } from "@jest/globals";
import { planRetention, RETENTION } from "./retention.ts";

describe("planRetention()", () => {
  it("should remove forgotten executions by age and by number, the newest last", () => {
    const forgotten = Array.from({ length: RETENTION.forgotten + 1 }, (_, index) => ({
      id: `e${index}`,
      endedWallMs: 0,
      forgottenWallMs: 1_000 + index,
    }));
    expect(planRetention(forgotten, 2_000)).toEqual({ forget: [], remove: ["e0"] });
    const [first] = forgotten.slice(1);
    if (first === undefined) throw new Error("there is one");
    const bound = first.forgottenWallMs + RETENTION.forgottenMs;
    expect(planRetention([first], bound).remove).toEqual([]);
    expect(planRetention([first], bound + 1).remove).toEqual([first.id]);
  });

  it("should forget the oldest unrecorded ends beyond the limit", () => {
    const ended = Array.from({ length: RETENTION.unrecorded + 2 }, (_, index) => ({
      id: `e${index}`,
      endedWallMs: 10_000 - index,
      forgottenWallMs: null,
    }));
    expect(planRetention(ended, 0).forget).toEqual([`e${RETENTION.unrecorded + 1}`, `e${RETENTION.unrecorded}`]);
  });
});
