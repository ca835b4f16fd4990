import { describe, expect, it } from "@jest/globals";
import type { Desired, Observed } from "./execution.ts";
import { goneObservation, type RecordedExecution, settleReport } from "./settle-report.ts";

const NONE: ReadonlyMap<string, number> = new Map();

function recorded(...rows: readonly (readonly [string, Desired, Observed | null])[]) {
  return new Map<string, RecordedExecution>(rows.map(([id, desired, observed]) => [id, { desired, observed }]));
}

describe("settleReport()", () => {
  it.each([
    ["RUN", "RUNNING", true],
    ["RUN", "STARTING", true],
    ["RUN", "READY", true],
    ["RUN", null, false],
    ["RUN", "ENDED", false],
    ["STOP", "RUNNING", true],
    ["STOP", null, true],
    ["STOP", "ENDED", false],
    ["FORGET", "ENDED", false],
    ["FORGET", null, false],
  ] as const)(
    "should find one that is to %s and was seen as %j gone after two whole reports: %j",
    (desired, observed, isGone) => {
      const known = recorded(["e", desired, observed]);
      const first = settleReport(known, NONE, { isWhole: true, executions: [] });
      expect(first.gone).toEqual([]);
      const second = settleReport(known, first.misses, { isWhole: true, executions: [] });
      expect(second.gone).toEqual(isGone ? ["e"] : []);
    },
  );

  it("should begin to count again when the execution is there, and not count reports of changes", () => {
    const known = recorded(["e", "RUN", "RUNNING"]);
    const missed = settleReport(known, NONE, { isWhole: true, executions: [] }).misses;
    expect(settleReport(known, missed, { isWhole: false, executions: [] }).misses).toEqual(missed);
    const there = { id: "e", observed: "RUNNING" } as const;
    expect(settleReport(known, missed, { isWhole: false, executions: [there] }).misses).toEqual(NONE);
    expect(settleReport(known, missed, { isWhole: true, executions: [there] }).misses).toEqual(NONE);
  });

  it("should tell what the record does not know, and what runs after its end", () => {
    const known = recorded(["ended", "FORGET", "ENDED"], ["lost", "FORGET", null]);
    const executions = [
      { id: "stranger", observed: "RUNNING" },
      { id: "ended", observed: "ENDED" },
      { id: "lost", observed: "RUNNING" },
    ] as const;
    expect(settleReport(known, NONE, { isWhole: true, executions })).toEqual({
      misses: NONE,
      gone: [],
      orphans: ["stranger"],
      revived: ["lost"],
    });
  });
});

describe("goneObservation()", () => {
  it("should keep when the execution started", () => {
    const before = { ...goneObservation(null, { epoch: 1, report: 1 }), startedAtMs: 5 };
    expect(goneObservation(before, { epoch: 2, report: 7 })).toMatchObject({
      ...{ observed: "ENDED", end: "GONE", epoch: 2, report: 7, startedAtMs: 5 },
    });
  });
});
