import { describe, expect, it } from "@jest/globals";
import { FLAG_END_STREAM, FRAME_HEADER_BYTES, FRAME_TYPE, messageFrame } from "./http2-frames.ts";
import { MessageReader } from "./message-reader.ts";

const MOST_BYTES = 16_384;

/** The frames in a sequence of bytes. */
function framesIn(bytes: Buffer) {
  const frames: { readonly type: number; readonly flags: number; readonly payload: Buffer }[] = [];
  for (let from = 0; from < bytes.length; ) {
    const end = from + FRAME_HEADER_BYTES + bytes.readUIntBE(from, 3);
    const payload = bytes.subarray(from + FRAME_HEADER_BYTES, end);
    frames.push({ type: bytes.readUInt8(from + 3), flags: bytes.readUInt8(from + 4), payload });
    from = end;
  }
  return frames;
}

describe("messageFrame()", () => {
  it.each([
    [0, 1],
    [MOST_BYTES - 5, 1],
    [MOST_BYTES - 4, 2],
    [50_000, 4],
  ])("should put a message of %d bytes into frames that every server takes: %d", (length, count) => {
    const message = Buffer.from(Array.from({ length }, (_, index) => index % 251));
    const frames = framesIn(messageFrame(1, message, true));
    expect(frames).toHaveLength(count);
    expect(frames.every(({ type, payload }) => type === FRAME_TYPE.data && payload.length <= MOST_BYTES)).toBe(true);
    expect(frames.map(({ flags }) => flags)).toEqual([...Array(count - 1).fill(0), FLAG_END_STREAM]);
    const read: Buffer[] = [];
    const reader = new MessageReader();
    for (const { payload } of frames) reader.push(payload, (one) => read.push(Buffer.from(one)));
    expect(read).toEqual([message]);
  });
});
