import { describe, expect, it } from "@jest/globals";
import { EVENT_CATALOGUE, EVENT_TYPES, isEventType } from "./event-catalogue.ts";
import { formatEventCatalogue } from "./event-page.ts";

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
  ])("should judge %j", (text, expected) => {
    expect(isEventType(text)).toBe(expected);
  });
});

describe("formatEventCatalogue()", () => {
  it("should describe each type, with all of its reasons", () => {
    const page = formatEventCatalogue();
    for (const type of EVENT_TYPES) {
      expect(page).toContain(`## ${type}\n\n${EVENT_CATALOGUE[type].when}\n`);
      for (const reason of EVENT_CATALOGUE[type].reasons) expect(page).toContain(`\`${reason}\``);
    }
  });
});
