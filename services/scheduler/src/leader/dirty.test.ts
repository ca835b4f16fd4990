import { describe, expect, it } from "@jest/globals";
import { Dirty } from "./dirty.ts";

describe("Dirty", () => {
  it("should return each ordered execution once, however many there are", () => {
    const dirty = new Dirty();
    const ids = Array.from({ length: 120 }, (_, index) => `e${index}`);
    dirty.addOrdered(ids);
    dirty.addOrdered(ids);
    const taken: string[] = [];
    while (dirty.hasOrders) taken.push(...dirty.takeOrdered(50));
    expect(taken).toEqual(ids);
  });
});
