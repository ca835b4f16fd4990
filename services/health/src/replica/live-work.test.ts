import { describe, expect, it } from "@jest/globals";
import type { Observed } from "@rollcall/domain";
import type { ReportedExecution } from "@rollcall/store";
import fc from "fast-check";
import { LiveWork, MOST_REPORTED, type ReportPart } from "./live-work.ts";

function execution(id: string, observed: Observed = "RUNNING"): ReportedExecution {
  return {
    ...{ id, observed, startedAtMs: null, endedAtMs: null, end: null, exitCode: null, signal: null },
    ...{ message: "", job: "j", specDigest: null },
  };
}

function part(number: number, ids: readonly string[], changes: Partial<ReportPart> = {}): ReportPart {
  const executions = ids.map((id) => execution(id));
  return { number, isWhole: false, hasMore: false, digest: BigInt(number), executions, ...changes };
}

const idsOf = (report: { readonly executions: readonly ReportedExecution[] } | null) =>
  report?.executions.map(({ id }) => id) ?? null;

describe("LiveWork.take()", () => {
  it("should collect the parts of a report, and save nothing of an incomplete one", () => {
    const work = new LiveWork();
    expect(work.take(part(1, ["a"], { isWhole: true, hasMore: true }))).toBe("more");
    expect([work.hasReport, work.beginSave(false)]).toEqual([false, null]);
    expect(work.take(part(1, ["b"], { isWhole: true }))).toBe("complete");
    expect(work.beginSave(false)).toMatchObject({ number: 1, whole: true, executions: [{ id: "a" }, { id: "b" }] });
  });

  it.each([
    ["a number that was there", [part(2, ["a"]), part(2, ["b"])]],
    ["a lower number", [part(2, ["a"]), part(1, ["b"])]],
    ["another report between parts", [part(1, ["a"], { hasMore: true }), part(2, ["b"])]],
  ])("should refuse %s", (_, parts) => {
    const work = new LiveWork();
    expect(parts.map((it) => work.take(it)).at(-1)).toBe("out-of-order");
  });

  it("should refuse more executions than a node can report, in one report or several", () => {
    const ids = (from: number, count: number) => Array.from({ length: count }, (_, index) => `e${from + index}`);
    expect(new LiveWork().take(part(1, ids(0, MOST_REPORTED + 1)))).toBe("too-many");
    const work = new LiveWork();
    expect(work.take(part(1, ids(0, MOST_REPORTED)))).toBe("complete");
    expect(work.take(part(2, ids(0, MOST_REPORTED)))).toBe("complete");
    expect(work.take(part(3, ids(1, MOST_REPORTED)))).toBe("too-many");
  });
});

describe("LiveWork, reports that wait", () => {
  it("should merge reports that arrive while another is saved", () => {
    const work = new LiveWork();
    work.take(part(1, ["a"]));
    expect(idsOf(work.beginSave(false))).toEqual(["a"]);
    work.take(part(2, ["b"]));
    work.take(part(3, ["c"], { isWhole: true }));
    work.take(part(4, ["b"]));
    expect(work.beginSave(false)).toBeNull();
    expect(work.saved()).toBe(1);
    expect(work.beginSave(false)).toMatchObject({ number: 4, whole: true, executions: [{ id: "b" }, { id: "c" }] });
  });

  it("should save again a report that may not have been saved, merged with later ones", () => {
    const work = new LiveWork();
    work.take(part(1, ["a", "b"], { isWhole: true }));
    work.beginSave(false);
    work.take(part(2, [], { executions: [execution("a", "ENDED")] }));
    work.notSaved();
    expect(work.beginSave(false)).toEqual({
      ...{ number: 2, whole: true },
      executions: [execution("a", "ENDED"), execution("b")],
    });
  });

  it("should never lose the last report about an execution, whatever fails in between", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("report" as const), id: fc.constantFrom("a", "b", "c"), isWhole: fc.boolean() }),
      fc.record({ kind: fc.constantFrom("begin" as const, "saved" as const, "failed" as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const work = new LiveWork();
        const said = new Map<string, string>();
        const record = new Map<string, string>();
        let saving: readonly ReportedExecution[] = [];
        const begin = () => {
          saving = work.beginSave(false)?.executions ?? saving;
        };
        const save = () => {
          for (const { id, message } of saving) record.set(id, message);
          saving = [];
          work.saved();
        };
        let number = 0;
        for (const it of steps) {
          if (it.kind === "report") {
            number += 1;
            const message = String(number);
            const executions = [{ ...execution(it.id), message }];
            work.take(part(number, [], { executions, isWhole: it.isWhole }));
            said.set(it.id, message);
          } else if (it.kind === "begin") begin();
          else if (it.kind === "saved") save();
          else {
            work.notSaved();
            saving = [];
          }
        }
        save();
        begin();
        save();
        expect(record).toEqual(said);
      }),
    );
  });
});

describe("LiveWork.asksForReport()", () => {
  it("should ask once per disagreement, and not before the report that follows a Welcome", () => {
    const work = new LiveWork();
    expect(work.asksForReport(7n, false, 0)).toBe(false);
    work.take(part(1, ["a"], { digest: 7n }));
    expect(work.asksForReport(7n, false, 0)).toBe(false);
    expect([work.asksForReport(8n, false, 0), work.asksForReport(8n, false, 0)]).toEqual([true, false]);
    work.take(part(2, ["a"], { digest: 7n, hasMore: true }));
    expect(work.asksForReport(8n, false, 0)).toBe(false);
    work.take(part(2, ["b"], { digest: 7n }));
    expect(work.asksForReport(8n, false, 0)).toBe(true);
  });
});

describe("LiveWork, saved only in part", () => {
  it("should ask once for another whole report, and not too early", () => {
    const work = new LiveWork();
    work.take(part(1, ["a"], { isWhole: true, digest: 7n }));
    work.askAgainAt(60_000);
    expect(work.asksForReport(7n, false, 59_999)).toBe(false);
    expect([work.asksForReport(7n, false, 60_000), work.asksForReport(7n, false, 60_001)]).toEqual([true, false]);
    work.take(part(2, ["a"], { digest: 7n }));
    expect(work.asksForReport(7n, false, 60_002)).toBe(true);
    work.take(part(3, ["a"], { isWhole: true, digest: 7n }));
    expect(work.asksForReport(7n, false, 60_003)).toBe(false);
  });
});

describe("LiveWork while another agent may have the node's executions", () => {
  const LACKED = { observed: "ENDED", end: "GONE" } as const;
  const STOPPED = { observed: "ENDED", end: "STOPPED", startedAtMs: null } as const;

  it("should not consider executions gone that its agent lacks, and ask again once the agent can be trusted", () => {
    const work = new LiveWork();
    const running = execution("runs");
    const ended: ReportedExecution = { ...execution("ended", "ENDED"), end: "EXITED", exitCode: 0 };
    const all = [running, ended, { ...execution("lacked"), ...LACKED }, { ...execution("never"), ...STOPPED }];
    work.take(part(1, [], { isWhole: true, digest: 7n, executions: all }));
    expect(work.beginSave(true)).toEqual({ number: 1, whole: false, executions: [running, ended] });
    work.saved();
    expect(work.asksForReport(7n, true, 0)).toBe(false);
    expect([work.asksForReport(7n, false, 0), work.asksForReport(7n, false, 0)]).toEqual([true, false]);
    work.take(part(2, [], { isWhole: true, digest: 7n, executions: all }));
    expect(work.beginSave(false)).toEqual({ number: 2, whole: true, executions: all });
    work.saved();
    expect(work.asksForReport(7n, false, 0)).toBe(false);
  });

  it("should save everything that could not be saved while in doubt", () => {
    const work = new LiveWork();
    const lacked = { ...execution("lacked"), ...LACKED };
    work.take(part(1, [], { isWhole: true, digest: 7n, executions: [lacked] }));
    expect(work.beginSave(true)?.executions).toEqual([]);
    work.notSaved();
    expect(work.beginSave(false)).toEqual({ number: 1, whole: true, executions: [lacked] });
  });
});
