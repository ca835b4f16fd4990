import { describe, expect, it } from "@jest/globals";
import { LogFrames, parseStamp } from "./log-frames.ts";

function frame(stream: number, payload: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(payload), 4);
  return Buffer.concat([header, Buffer.from(payload)]);
}

describe("LogFrames", () => {
  it("should parse frames from chunks of any size", () => {
    const bytes = Buffer.concat([frame(1, "2026-11-23T15:08:40Z one\n"), frame(2, "2026-11-23T15:08:40.5Z  two\n")]);
    for (let size = 1; size <= bytes.length; size += 1) {
      const frames = new LogFrames();
      const entries = [];
      for (let at = 0; at < bytes.length; at += size) entries.push(...frames.take(bytes.subarray(at, at + size)));
      expect(entries.map(({ stream, data }) => [stream, Buffer.from(data).toString()])).toEqual([
        ["stdout", "one\n"],
        ["stderr", " two\n"],
      ]);
      expect((entries[1]?.atNs ?? 0n) - (entries[0]?.atNs ?? 0n)).toBe(500_000_000n);
    }
  });

  it.each([
    ["a frame that is too large", Buffer.from([1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])],
    ["an entry without its time", frame(1, "no time at all")],
  ])("should refuse %s", (_, bytes) => {
    expect(() => new LogFrames().take(bytes)).toThrow();
  });
});

describe("parseStamp()", () => {
  it.each([
    ["1970-01-01T00:00:01Z", 1_000_000_000n],
    ["1970-01-01T00:00:01.000000002Z", 1_000_000_002n],
    ["1970-01-01T01:00:01.5+01:00", 1_500_000_000n],
    ["yesterday", null],
    ["", null],
  ])("should read %s", (text, expected) => {
    expect(parseStamp(text)).toBe(expected);
  });
});
