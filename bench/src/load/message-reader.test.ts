import { describe, expect, it } from "@jest/globals";
import { MessageReader } from "./message-reader.ts";

describe("MessageReader", () => {
  const messages = ["", "a", "bc".repeat(300), "d"];
  const stream = Buffer.concat(messages.map(prefixed));

  it.each([1, 4, 5, 6, 7, 100, stream.length])("should join pieces of %d bytes", (size) => {
    const reader = new MessageReader();
    const read: string[] = [];
    for (let start = 0; start < stream.length; start += size) {
      reader.push(stream.subarray(start, start + size), (message) => read.push(String(message)));
    }
    expect(read).toEqual(messages);
  });
});

function prefixed(message: string): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, Buffer.from(message)]);
}
