import { describe, expect, it } from "@jest/globals";
import { EVENT_CATALOGUE, EVENT_TYPES, isEventType } from "./event-catalogue.ts";

describe("EVENT_TYPES", () => {
  it("should have every row of the catalogue", () => {
    expect(EVENT_TYPES).toEqual(Object.keys(EVENT_CATALOGUE));
  });
});

describe("isEventType()", () => {
  it.each([
    ["node.approved", true],
    ["node.exploded", false],
    ["__proto__", false],
    ["", false],
  ])("should evaluate %j", (text, expected) => {
    expect(isEventType(text)).toBe(expected);
  });
});
