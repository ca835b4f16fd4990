import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { FrameReader, frameMessage, MOST_FRAME_BYTES } from "./length-framing.ts";

describe("FrameReader", () => {
  it("should return the framed messages, however the bytes are split", () => {
    const message = fc.uint8Array({ maxLength: 50 });
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 10 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 20 })),
        (all, cuts) => {
          const bytes = Buffer.concat(all.map((one) => frameMessage(one)));
          const reader = new FrameReader();
          const read: Uint8Array[] = [];
          for (let at = 0; at < bytes.length; ) {
            const next = at + (cuts.next().value ?? 1);
            read.push(...reader.take(bytes.subarray(at, next)));
            at = next;
          }
          expect(read.map((one) => [...one])).toEqual(all.map((one) => [...one]));
        },
      ),
    );
  });

  it("should refuse a message with an excessive length before it arrives", () => {
    const header = new Uint8Array(4);
    new DataView(header.buffer).setUint32(0, MOST_FRAME_BYTES + 1);
    expect(() => new FrameReader().take(header)).toThrow("longer than the limit");
  });

  it("should read a message of exactly the largest size", () => {
    const largest = new Uint8Array(MOST_FRAME_BYTES);
    expect(new FrameReader().take(frameMessage(largest))).toEqual([largest]);
  });
});
