import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { covers, escapeToken, eventSubject } from "./subjects.ts";

/** Read a token as its receiver would. */
const textIn = (token: string) => (token === "%" ? "" : decodeURIComponent(token));

describe("escapeToken()", () => {
  it.each([
    ["web-1", "web-1"],
    ["Web_1", "Web_1"],
    ["rack1.node.7", "rack1%2Enode%2E7"],
    ["a*b>c d", "a%2Ab%3Ec%20d"],
    ["100%", "100%25"],
    ["knöten", "kn%C3%B6ten"],
    ["line\nfeed", "line%0Afeed"],
    ["", "%"],
  ])("should make one token of %j", (text, token) => {
    expect(escapeToken(text)).toBe(token);
    expect(textIn(token)).toBe(text);
  });

  it("should be reversible, and give no two texts the same token", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), (text) => {
        const token = escapeToken(text);
        expect(token).toMatch(/^[A-Za-z0-9_%-]+$/);
        expect(textIn(token)).toBe(text);
      }),
    );
  });
});

describe("eventSubject()", () => {
  it("should put each part of the type into a token of its own, and the node last", () => {
    const event = { type: "node.health.changed", subject: "rack1.node-7" };
    expect(eventSubject("rollcall.events", event)).toBe("rollcall.events.node.health.changed.rack1%2Enode-7");
  });

  it("should stay a subject that NATS takes, whatever it is made of", () => {
    expect(eventSubject("x", { type: "", subject: "" })).toBe("x.%.%");
    expect(eventSubject("x", { type: "a..b c", subject: ">" })).toBe("x.a.%.b%20c.%3E");
  });
});

describe("covers()", () => {
  it.each([
    [">", "a.>", true],
    ["a.>", "a.>", true],
    ["a.>", "a.b.>", true],
    ["*.>", "a.>", true],
    ["*.b.>", "a.b.>", true],
    ["a.*.>", "a.>", false],
    ["a.b.>", "a.>", false],
    ["a.*", "a.>", false],
    ["a.>", ">", false],
    ["a.>", "*.>", false],
    ["a.>", "a", false],
    ["a.b", "a.b", true],
    ["a.*", "a.b", true],
    ["a.b", "a.*", false],
    ["a.b", "a.b.c", false],
    ["a.b.c", "a.b", false],
  ])("should answer whether %s covers %s: %s", (outer, inner, answer) => {
    expect(covers(outer, inner)).toBe(answer);
  });
});
