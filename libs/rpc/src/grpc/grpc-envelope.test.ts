import { describe, expect, it } from "@jest/globals";
import { refuse } from "@rollcall/errors";
import fc from "fast-check";
import { PartialMessage, trailersOf } from "./grpc-envelope.ts";
import { toGrpcStatus } from "./grpc-error.ts";

describe("trailersOf()", () => {
  it("should encode the details of a status without padding, whatever their length", () => {
    for (const text of ["a", "ab", "abc"]) {
      const details = String(trailersOf(toGrpcStatus(refuse("OVERLOADED", text)))["grpc-status-details-bin"]);
      expect(details).toMatch(/^[\w+/]+$/);
      expect(Buffer.from(details, "base64").includes(text)).toBe(true);
    }
  });
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
