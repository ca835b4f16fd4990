import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { PartialMessage } from "./grpc-envelope.ts";

describe("PartialMessage", () => {
  it("should have all bytes in order, however they come, and leave those alone that it gave before", () => {
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
