import { describe, expect, it } from "@jest/globals";
import { ManualClock } from "@rollcall/testkit/time";
import { Mailbox } from "./mailbox.ts";

const NEVER = new AbortController().signal;

/** Return whether a rest of up to an hour ends immediately. */
async function isDue(box: Mailbox<number>): Promise<boolean> {
  const clock = new ManualClock();
  let ended = false;
  void box.rest(clock, 3_600_000, NEVER).then(() => {
    ended = true;
  });
  await clock.pass(0);
  const isDue = ended;
  await clock.pass(3_600_000);
  return isDue;
}

describe("Mailbox", () => {
  it("should keep the latest item of each id, in order of arrival", () => {
    const box = new Mailbox<number>();
    box.put("a", 1);
    box.put("b", 2);
    box.put("a", 3);
    expect(box.take(10)).toEqual({ items: [3, 2], dropped: [] });
    expect(box.take(10)).toEqual({ items: [], dropped: [] });
  });

  it("should report the last state of an id: gone, or back", () => {
    const box = new Mailbox<number>();
    box.put("a", 1);
    box.drop("a");
    box.drop("b");
    box.put("b", 2);
    expect(box.take(10)).toEqual({ items: [2], dropped: ["a"] });
    expect(box.take(10)).toEqual({ items: [], dropped: [] });
  });

  it("should end a rest on any change, and the next one if items are left", async () => {
    const box = new Mailbox<number>();
    expect(await isDue(box)).toBe(false);
    for (const id of ["a", "b", "c"]) box.put(id, 1);
    expect(await isDue(box)).toBe(true);
    expect(box.take(2).items).toHaveLength(2);
    expect(await isDue(box)).toBe(true);
    expect(box.take(2).items).toHaveLength(1);
    expect(await isDue(box)).toBe(false);
    box.drop("a");
    expect(await isDue(box)).toBe(true);
  });
});
