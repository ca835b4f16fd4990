import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ACK_PATIENCE_MS, beginReports, type ReportEvent, reportDueMs, stepReports } from "./report-machine.ts";

const changed = (...ids: string[]): ReportEvent => ({ kind: "changed", ids, wantedSpecs: [] });
const wanted = (...wantedSpecs: string[]): ReportEvent => ({ kind: "changed", ids: [], wantedSpecs });
const acked = (number: number): ReportEvent => ({ kind: "acked", number });

/** A state machine of reports that returns its effects as text. */
class Run {
  state = beginReports(true, 0);
  nowMs = 0;

  step(event: ReportEvent, afterMs = 0): readonly string[] {
    this.nowMs += afterMs;
    const { state, effects } = stepReports(this.state, event, this.nowMs);
    this.state = state;
    return effects.map((effect) =>
      effect.kind === "send-report"
        ? `${effect.number}:${effect.ids?.join() ?? "all"}`
        : `want:${effect.digests.join()}`,
    );
  }

  due(): readonly string[] {
    const atMs = reportDueMs(this.state);
    if (atMs === null) return ["never"];
    this.nowMs = Math.max(this.nowMs, atMs);
    return this.step({ kind: "due" });
  }
}

describe("stepReports()", () => {
  it("should start with a complete report, and gather changes until it is acknowledged", () => {
    const run = new Run();
    expect(run.due()).toEqual(["1:all"]);
    run.step(changed("a", "b"));
    run.step(changed("b", "c"));
    expect(run.step({ kind: "due" })).toEqual([]);
    expect(run.step(acked(1))).toEqual([]);
    expect(run.due()).toEqual(["2:a,b,c"]);
    run.step(acked(2));
    expect(run.due()).toEqual(["never"]);
  });

  it("should send nothing before the machine's executions are known", () => {
    const run = new Run();
    run.state = beginReports(false, 0);
    run.step({ kind: "asked" });
    expect(run.due()).toEqual(["never"]);
    run.step(changed());
    expect(run.due()).toEqual(["1:all"]);
  });

  it("should follow an unacknowledged report by a complete one", () => {
    const run = new Run();
    run.due();
    run.step(acked(1));
    run.step(changed("a"));
    expect(run.due()).toEqual(["2:a"]);
    run.step(acked(1));
    expect(run.step({ kind: "due" }, ACK_PATIENCE_MS - 1)).toEqual([]);
    expect(run.step({ kind: "due" }, 1)).toEqual([]);
    expect(run.due()).toEqual(["3:all"]);
  });

  it("should send a complete report on request", () => {
    const run = new Run();
    run.due();
    run.step(acked(1));
    run.step({ kind: "asked" });
    expect(run.due()).toEqual(["2:all"]);
  });

  it("should request each spec once, again after a while, and at most a hundred at a time", () => {
    const run = new Run();
    expect(run.step(wanted("a", "b"))).toEqual(["want:a,b"]);
    expect(run.step(wanted("a", "b", "c"))).toEqual(["want:c"]);
    run.step({ kind: "spec", digest: "a" });
    expect(run.step(wanted("b", "c"), 20_000)).toEqual(["want:b,c"]);
    const many = Array.from({ length: 150 }, (_, index) => `d${index}`);
    const other = new Run();
    expect(other.step(wanted(...many))[0]?.split(",")).toHaveLength(100);
    expect(other.step(wanted(...many))).toEqual([]);
    other.step({ kind: "spec", digest: "d0" });
    expect(other.step(wanted(...many.slice(1)))).toEqual(["want:d100"]);
  });

  it("should eventually report every change, with at most one report in flight", () => {
    const event = fc.oneof(
      fc.constantFrom("a", "b", "c").map((id) => changed(id)),
      fc.constant<ReportEvent>({ kind: "due" }),
      fc.constant<ReportEvent>({ kind: "asked" }),
      fc.nat(5).map(acked),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(30_000))), (events) => {
        const run = new Run();
        const untold = new Set<string>();
        const note = (told: readonly string[]): void => {
          for (const words of told) {
            const [, ids = ""] = words.split(":");
            if (ids === "all") untold.clear();
            else for (const id of ids.split(",")) untold.delete(id);
          }
        };
        for (const [one, afterMs] of events) {
          const before = run.state.inFlight;
          if (one.kind === "changed") for (const id of one.ids) untold.add(id);
          const told = run.step(one, afterMs);
          if (before !== null && one.kind !== "acked") expect(told).toEqual([]);
          note(told);
        }
        for (let turn = 0; turn < 4; turn += 1) {
          run.step(acked(run.state.number));
          note(run.due().filter((words) => words !== "never"));
        }
        expect([...untold]).toEqual([]);
      }),
    );
  });
});
