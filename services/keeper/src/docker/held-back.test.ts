import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { ManualClock, settle } from "@rollcall/testkit/time";
import { heldBack } from "./held-back.ts";

describe("heldBack()", () => {
  function setUp(mostBytes = 100) {
    const clock = new ManualClock();
    const source = new PassThrough();
    const taken: string[] = [];
    const ended = (async () => {
      for await (const piece of heldBack(source, { clock, holdMs: 500, mostBytes })) taken.push(String(piece));
    })();
    /** Let a piece arrive, and then let time pass. */
    const come = async (text: string, thenMs: number): Promise<void> => {
      source.write(text);
      await settle();
      clock.advance(thenMs);
      await settle();
    };
    return { clock, source, taken, ended, come };
  }

  it("should yield pieces after a delay, and drop those from shortly before the end", async () => {
    const { source, taken, ended, come } = setUp();
    await come("one", 499);
    expect(taken).toEqual([]);
    await come("two", 1);
    expect(taken).toEqual(["one"]);
    await come("three", 499);
    expect(taken).toEqual(["one", "two"]);
    source.end();
    await ended;
    expect(taken).toEqual(["one", "two"]);
  });

  it("should pause reading while it holds enough", async () => {
    const { source, taken, come } = setUp(3);
    await come("one", 0);
    await come("two", 499);
    expect([taken, source.readableLength]).toEqual([[], 3]);
    await come("end", 1);
    expect(taken).toEqual(["one"]);
  });

  it("should fail when its source fails", async () => {
    const { source, ended, come } = setUp();
    await come("one", 0);
    source.destroy(new Error("broken"));
    await expect(ended).rejects.toThrow("broken");
  });
});
