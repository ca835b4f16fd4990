import { expect, it } from "@jest/globals";
import { Dice } from "./dice.ts";
import { Taste } from "./taste.ts";
import { countFor } from "./values.ts";

it("should give the lists of a case many items, but not all lists", () => {
  const lists = 2_000;
  const sums = Array.from({ length: 50 }, (_, caseNumber) => {
    const taste = new Taste(new Dice(2_026, caseNumber), new Map());
    return Array.from({ length: lists }, () => countFor(taste)).reduce((sum, count) => sum + count, 0);
  });
  expect(Math.max(...sums)).toBeGreaterThan(2 * lists);
  expect(Math.max(...sums)).toBeLessThan(3_000 + 3 * lists);
});
