import { describe, expect, it } from "@jest/globals";
import { interactionsOf, type TraceEvent, tasksOf } from "./trace.ts";

const timing = (ph: string, id: string, ts: number, interactionId?: number): TraceEvent => ({
  ...{ name: "EventTiming", ph, pid: 7, id2: { local: id }, ts },
  ...(interactionId === undefined ? {} : { args: { data: { interactionId } } }),
});

describe("interactionsOf()", () => {
  it("should use the longest event of each interaction, and ignore other events", () => {
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

  it("should omit interactions that started before the trace or did not end in it, in any order of events", () => {
    const events = [timing("e", "0x9", 5_000), timing("e", "0x1", 30_000), timing("b", "0x1", 10_000, 2)];
    expect([...interactionsOf([...events, timing("b", "0x2", 40_000, 3)])]).toEqual([20]);
  });
});

describe("tasksOf()", () => {
  it("should return the tasks of the main threads of pages, and nothing else", () => {
    const named = (tid: number, name: string): TraceEvent => ({
      ...{ name: "thread_name", ph: "M", pid: 7, tid, ts: 0 },
      args: { name },
    });
    const task = (tid: number, dur: number, name = "RunTask"): TraceEvent => ({
      name,
      ph: "X",
      pid: 7,
      tid,
      ts: 1,
      dur,
    });
    const threads = [named(1, "CrRendererMain"), named(2, "Compositor")];
    const events = [task(1, 12_000), ...threads, task(2, 90_000), task(1, 70_000, "Paint"), task(1, 3_500)];
    expect([...tasksOf(events)]).toEqual([12, 3.5]);
  });
});
