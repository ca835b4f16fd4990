import { describe, expect, it } from "@jest/globals";
import { describeError, mapError, refuse } from "@rollcall/errors";
import fc from "fast-check";
import { PartialMessage, trailersOf } from "./grpc-envelope.ts";

/** The details in the trailers for an error, as they are sent. */
function detailsOf(error: unknown): string {
  return String(trailersOf(mapError(error))["grpc-status-details-bin"]);
}

describe("trailersOf()", () => {
  it("should encode the details of a status without padding, whatever their length", () => {
    for (const text of ["a", "ab", "abc"]) {
      const details = detailsOf(refuse("OVERLOADED", text));
      expect(details).toMatch(/^[\w+/]+$/);
      expect(Buffer.from(details, "base64").includes(text)).toBe(true);
    }
  });

  it("should not reveal the exception of a handler", () => {
    const error = new Error("password=hunter2");
    expect(trailersOf(mapError(error))).toMatchObject({ "grpc-status": "13", "grpc-message": "internal%20error" });
    expect(Buffer.from(detailsOf(error), "base64").toString()).not.toContain("hunter2");
  });

  it("should keep other trailing metadata, and send status OK without an error", () => {
    expect(trailersOf(null, { "x-last": "2" })).toEqual({ "x-last": "2", "grpc-status": "0" });
  });

  it.each(["x", "é", "\u{1f4be}", "\0", "\ud800"])(
    "should be short enough for every client, whatever an error contains: %j",
    (character) => {
      const long = character.repeat(50_000);
      const violations = Array.from({ length: 1_000 }, () => ({ field: long, description: long }));
      const error = refuse("INVALID_REQUEST", long, {
        violations,
        metadata: { node: long, label: long },
        subject: long,
        retryAfterMs: 1,
      });
      const message = decodeURIComponent(String(trailersOf(mapError(error))["grpc-message"]));
      expect(Buffer.from(detailsOf(error), "base64").length).toBeLessThan(7_000);
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1_024);
      expect(message).toMatch(/\.\.\.$/);
      expect(message).not.toContain("\ufffd...");
      expect(describeError(error).violations.length).toBeGreaterThan(0);
    },
  );
});

describe("PartialMessage", () => {
  it("should return all bytes in order, however they arrive, and not change those returned before", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700 }), { minLength: 1, maxLength: 40 }), (pieces) => {
        const partial = new PartialMessage();
        const given = pieces.map((piece) => partial.add(piece));
        given.forEach((bytes, index) => {
          expect(bytes.equals(Buffer.concat(pieces.slice(0, index + 1)))).toBe(true);
        });
      }),
    );
  });
});
