import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { OutputTimeSchema } from "@rollcall/api/rollcall/work/v1/work_pb";
import fc from "fast-check";
import { SILENT_SINK } from "../shell.ts";
import { type LineFormat, OutputWriter, SharedSink } from "./output-writer.ts";

const PLAIN: LineFormat = { prefix: null, hasTime: false };
const AT = Date.UTC(2026, 0, 2, 3, 4, 5);

function setUp() {
  const written: Buffer[] = [];
  const sink = new SharedSink({ ...SILENT_SINK, write: (data) => written.push(Buffer.from(data)) });
  const bytes = () => Buffer.concat(written);
  return { sink, bytes, text: () => bytes().toString() };
}

const pieceOf = (offset: number, text: string | Buffer) => ({
  ...{ offset: BigInt(offset), data: Buffer.from(text) },
  times: [],
});

describe("OutputWriter", () => {
  it("should write the bytes of one output unchanged, whatever the pieces", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), (pieces) => {
        const { sink, bytes } = setUp();
        const writer = new OutputWriter(sink, () => PLAIN);
        for (const data of pieces) writer.write({ offset: 0n, data, times: [] });
        writer.end();
        expect(bytes().equals(Buffer.concat(pieces))).toBe(true);
      }),
    );
  });

  it("should neither mix nor lose lines of several outputs, whatever the pieces", () => {
    const texts = fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.constantFrom("a", "b\n", "\n", "cd")));
    fc.assert(
      fc.property(texts, (pieces) => {
        const { sink, text } = setUp();
        const writers = ["0", "1", "2"].map((name) => new OutputWriter(sink, () => ({ ...PLAIN, prefix: `${name}|` })));
        const whole = ["", "", ""];
        for (const [of, part] of pieces) {
          writers[of]?.write(pieceOf((whole[of] ?? "").length, part));
          whole[of] += part;
        }
        for (const writer of writers) writer.end();
        for (const [of, expected] of whole.entries()) {
          const lines = text()
            .split("\n")
            .filter((line) => line.startsWith(`${of}|`));
          const ended = expected === "" || expected.endsWith("\n") ? expected : `${expected}\n`;
          expect(lines.map((line) => `${line.slice(2)}\n`).join("")).toBe(ended);
        }
        expect(text() === "" || text().endsWith("\n")).toBe(true);
      }),
    );
  });

  it("should start each line with the time at which it began, or with the word unknown", () => {
    const { sink, text } = setUp();
    const writer = new OutputWriter(sink, () => ({ prefix: null, hasTime: true }));
    const time = (offset: number, atMs: number) => {
      return create(OutputTimeSchema, { offset: BigInt(offset), time: timestampFromMs(atMs) });
    };
    writer.write({ ...pieceOf(0, "one\ntw"), times: [time(4, AT)] });
    writer.write({ ...pieceOf(6, "o\nthree"), times: [time(4, AT), time(7, AT + 5_000), time(8, AT + 9_000)] });
    writer.end();
    expect(text()).toBe(
      ["unknown                  one", "2026-01-02T03:04:05.000Z two", "2026-01-02T03:04:14.000Z three"].join("\n"),
    );
  });

  it("should keep a bounded part of an endless line", () => {
    const { sink, bytes } = setUp();
    const writer = new OutputWriter(sink, () => ({ ...PLAIN, prefix: "p|" }));
    for (let at = 0; at < 20; at += 1) writer.write(pieceOf(at * 10_000, Buffer.alloc(10_000, "x")));
    expect(bytes().length).toBeGreaterThan(130_000);
    writer.end();
    expect(bytes().toString()).toBe(`p|${"x".repeat(200_000)}\n`);
  });

  it("should end the line of another output before it writes", () => {
    const { sink, text } = setUp();
    let prefix: string | null = null;
    const first = new OutputWriter(sink, () => ({ ...PLAIN, prefix }));
    const second = new OutputWriter(sink, () => ({ ...PLAIN, prefix: "2|" }));
    first.write(pieceOf(0, "alo"));
    prefix = "1|";
    second.write(pieceOf(0, "here\n"));
    first.write(pieceOf(3, "ne\nnext\n"));
    sink.note("said");
    expect(text()).toBe("alo\n2|here\n1|ne\n1|next\nsaid\n");
  });
});
