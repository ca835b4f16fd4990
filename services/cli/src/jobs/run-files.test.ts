import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { PlanJobResponseSchema } from "@rollcall/api/rollcall/scheduler/v1/job_pb";
import { lines } from "../testing/run.ts";
import { planText } from "./run-files.ts";

describe("planText()", () => {
  it("should show where each execution would be placed, and why not elsewhere", () => {
    const plan = create(PlanJobResponseSchema, {
      executions: [
        { index: 0, nodeId: "n1", executionId: "01a" },
        { index: 1, nodeId: "n2", executionId: "01b", replaced: true },
        { index: 2, nodeId: "n2" },
      ],
      ...{ waiting: 1, nodes: 5, version: 4, changed: true },
      refusals: [{ reason: "INSUFFICIENT_CORES", message: "insufficient cores", nodes: 3 }],
      warnings: ["an outage stops it"],
    });
    expect(planText("web", plan)).toBe(
      lines(
        "web: would become version 4",
        "  0  n1  stays, 01a",
        "  1  n2  replaces 01b",
        "  2  n2  placed",
        "  1 would wait",
        "  3 of 5 nodes: insufficient cores",
        "  warning: an outage stops it",
      ),
    );
  });

  it("should report that nothing would change, and list only some of many executions", () => {
    const executions = Array.from({ length: 25 }, (_, index) => ({ index, nodeId: "n1", executionId: "x" }));
    const text = planText("web", create(PlanJobResponseSchema, { executions, version: 2 }));
    expect(text).toMatch(/^web: nothing to change, version 2\n/);
    expect(text).toMatch(/ {2}19 {2}n1 {2}stays, x\n {2}and 5 more\n$/);
  });
});
