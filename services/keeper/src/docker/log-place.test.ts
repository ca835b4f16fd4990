import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { LOG_BEGIN, type LogMark, resumeLog, takeEntry } from "./log-place.ts";

/** A log's entries in the order of their times. Several entries can have the same time. */
const LOG = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.string({ minLength: 1, maxLength: 4 })), {
    minLength: 1,
    maxLength: 30,
  })
  .map((steps) => {
    let at = 1n;
    return steps.map(([step, text]) => {
      at += BigInt(step);
      return { atNs: at, text };
    });
  });

function read(entries: readonly { atNs: bigint; text: string }[], mark: LogMark, store: string) {
  let place = resumeLog(mark, store.length);
  let text = store;
  for (const entry of entries) {
    const taken = takeEntry(place, entry.atNs, entry.text.length);
    text += entry.text.slice(taken.from);
    place = taken.place;
  }
  return { text, mark: place.mark };
}

describe("takeEntry()", () => {
  it("should take each byte once, however often and wherever reading is interrupted", () => {
    fc.assert(
      fc.property(LOG, fc.array(fc.tuple(fc.nat(), fc.boolean()), { maxLength: 5 }), (log, cuts) => {
        let [store, mark] = ["", LOG_BEGIN];
        for (const [cut, isMarkKept] of [...cuts, [log.length, true] as const]) {
          // A log may begin before the mark, because engines filter by whole seconds.
          const result = read(log.slice(0, cut % (log.length + 1)), mark, store);
          store = result.text;
          if (isMarkKept) mark = result.mark;
        }
        const { text } = read(log, mark, store);
        expect(text).toBe(log.map((entry) => entry.text).join(""));
      }),
    );
  });

  it("should continue with the existing entries when the engine has dropped the marked one", () => {
    const { text } = read([{ atNs: 9n, text: "new" }], { atNs: 5n, offset: 3 }, "before");
    expect(text).toBe("beforenew");
  });

  it("should read output again that a store has lost", () => {
    const { text } = read([{ atNs: 5n, text: "last" }], { atNs: 5n, offset: 10 }, "first");
    expect(text).toBe("firstlast");
  });
});
