import { describe, expect, it } from "@jest/globals";
import { interactionsOf, type TraceEvent } from "./trace.ts";

const timing = (ph: string, id: string, ts: number, interactionId?: number): TraceEvent => ({
  ...{ name: "EventTiming", ph, pid: 7, id2: { local: id }, ts },
  ...(interactionId === undefined ? {} : { args: { data: { interactionId } } }),
});

describe("interactionsOf()", () => {
  it("should take the longest event of each interaction, and leave out what is none", () => {
    const events = [
      timing("b", "0x1", 1_000, 5),
      timing("b", "0x2", 2_000, 5),
      timing("b", "0x3", 2_000, 0),
      timing("b", "0x4", 9_000, 6),
      { ...timing("b", "0x5", 0, 9), name: "Paint" },
      timing("e", "0x1", 41_000),
      timing("e", "0x2", 22_000),
      timing("e", "0x3", 90_000),
      timing("e", "0x4", 12_000),
    ];
    expect([...interactionsOf(events)].sort((one, other) => other - one)).toEqual([40, 3]);
  });

  it("should leave out what began before the trace or did not end in it, whatever the order of the events", () => {
    const events = [timing("e", "0x9", 5_000), timing("e", "0x1", 30_000), timing("b", "0x1", 10_000, 2)];
    expect([...interactionsOf([...events, timing("b", "0x2", 40_000, 3)])]).toEqual([20]);
  });
});
