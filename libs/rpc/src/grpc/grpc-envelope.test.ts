import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { PartialMessage } from "./grpc-envelope.ts";

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
