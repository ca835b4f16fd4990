import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { covers, escapeToken, eventSubject } from "./subjects.ts";

/** Decode a token as a receiver would. */
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

  it("should be reversible and encode no two strings as the same token", () => {
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
  it("should put each part of the type into a separate token, and the node last", () => {
    const event = { type: "node.health.changed", subject: "rack1.node-7" };
    expect(eventSubject("rollcall.events", event)).toBe("rollcall.events.node.health.changed.rack1%2Enode-7");
  });

  it("should produce a subject that NATS accepts for any input", () => {
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
