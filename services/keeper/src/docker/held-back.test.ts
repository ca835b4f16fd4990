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
    /** Let a piece come, and some time pass. */
    const come = async (text: string, thenMs: number): Promise<void> => {
      source.write(text);
      await settle();
      clock.advance(thenMs);
      await settle();
    };
    return { clock, source, taken, ended, come };
  }

  it("should pass pieces on after a time, and drop what came shortly before the end", async () => {
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

  it("should read no more while it holds enough", async () => {
    const { source, taken, come } = setUp(3);
    await come("one", 0);
    await come("two", 499);
    expect([taken, source.readableLength]).toEqual([[], 3]);
    await come("end", 1);
    expect(taken).toEqual(["one"]);
  });

  it("should fail as its source does", async () => {
    const { source, ended, come } = setUp();
    await come("one", 0);
    source.destroy(new Error("broken"));
    await expect(ended).rejects.toThrow("broken");
  });
});
